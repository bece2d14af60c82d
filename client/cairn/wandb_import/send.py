"""Sends what files hold. Each step may be repeated; the end of an attempt is set last: it says that all is there."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.calls.base import literal
from cairn.capture.secrets import mask
from cairn.client import Client
from cairn.errors import CairnError, Conflict, Invalid
from cairn.formats import Refused
from cairn.formats.wandb_offline import Facts, Stream, find_files, read_head, run_state
from cairn.formats.wandb_offline.words import is_name
from cairn.types import Attempt, Run
from cairn.wandb_import.describe import described, environment, link, origin, project_name, registration, scores_at
from cairn.wandb_import.gather import Gathered, folder_name, gather
from cairn.wandb_import.place import Runs, attempt_key, joined_attempt, moment
from cairn.wandb_import.report import FileReport
from cairn.wandb_import.scores import known_benchmarks

BATCH = 200
CURVES_AT_ONCE = 20
ENDED = {"finished": "finished", "failed": "failed", "crashed": "lost"}
Progress = Callable[[FileReport], None]


def import_folder(
    client: Client,
    *places: str | os.PathLike[str],
    project: str | None = None,
    tier: str = "shared",
    base_url: str | None = None,
    progress: Progress | None = None,
) -> list[FileReport]:
    """Imports every `.wandb` file at or below these places, older ones first.

    `project` is the registry's, by default named like W&B's. `tier` is that of `file://` references, shared or local.
    `base_url` is the W&B service that the folders are meant for (WANDB_BASE_URL, else W&B's own). What is wrong with
    one file is in its report, and the rest goes on. Raises `CairnError` where the service cannot be reached.
    """
    files = sorted({file.resolve() for place in places for file in find_files(place)}, key=_began)
    runs: dict[str, Runs] = {}
    reports = []
    for file in files:
        report = FileReport(folder_name(file))
        try:
            import_file(client, file, report, runs, project=project, tier=tier, base_url=base_url)
        except (Refused, OSError) as fault:
            report.skip(report.file, str(fault))
        except (Invalid, Conflict) as fault:
            report.skip(report.file, f"the service refuses it: {fault.detail}")
        reports.append(report)
        if progress is not None:
            progress(report)
    return reports


def _began(file: Path) -> tuple[float, str]:
    """Attempts are numbered in the order in which they began."""
    try:
        return read_head(file).started_at or 0.0, str(file)
    except OSError:
        return 0.0, str(file)


def import_file(
    client: Client,
    file: Path,
    report: FileReport,
    runs: dict[str, Runs],
    *,
    project: str | None = None,
    tier: str = "shared",
    base_url: str | None = None,
) -> None:
    """Imports one file and fills its report. `runs` is kept between files, by project."""
    with Stream(file, rows=False, summary=False) as stream:
        for _ in stream:
            pass
        facts = stream.facts
    if not facts.run_id:
        report.skip(report.file, "it does not say which run it is of: its beginning is missing or damaged")
        return
    name = project or project_name(facts.project)
    known = runs.setdefault(name, Runs(client, client.create_project(name).name))
    report.run_id, report.run = facts.run_id, f"{name}/{facts.name or facts.run_id}"
    report.state, report.state_reason = run_state(file, facts)
    if _was_imported_whole(client, known, facts, report):
        return
    found = gather(file)
    run, note = known.place(found.facts, link(found.facts, base_url), described(found.facts))
    report.run = str(run)
    report.notes += [each for each in (note, *found.notes) if each]
    report.skipped += found.skipped
    attempt, ours = _attempt(client, run, found)
    report.attempt = attempt.number
    if not ours:
        report.notes.append(f"joined to attempt {attempt.number}, which the training recorded itself")
    _send_checkpoints(client, run, attempt, found, report, tier)
    _send_curves(client, run, attempt, found, report)
    if ours:
        _end(client, run, attempt, found)


def _was_imported_whole(client: Client, runs: Runs, facts: Facts, report: FileReport) -> bool:
    """A file with an exit record does not change any more, and its attempt is ended once all of it is sent."""
    run = runs.find(facts) if facts.exit is not None else None
    if run is None:
        return False
    key = attempt_key(facts, report.file)
    ended = (each for each in client.list_attempts(run) if each.key == key and each.state in ("finished", "failed"))
    done = next(ended, None)
    if done is None:
        return False
    report.run, report.attempt, report.unchanged = str(run), done.number, True
    return True


def _attempt(client: Client, run: Run, found: Gathered) -> tuple[Attempt, bool]:
    """The attempt that this file is, and whether it is this import's own."""
    facts, attempts = found.facts, client.list_attempts(run)
    key = attempt_key(facts, found.file.name)
    known = next((each for each in attempts if each.key == key), None)
    if known is not None:
        return known, True
    joined = joined_attempt(attempts, moment(facts.started_at))
    if joined is not None:
        return joined, False
    fields: dict[str, Any] = {"key": key, "config": mask(facts.config) or None, "started_at": moment(facts.started_at)}
    fields["environment"] = mask(environment(facts)) or None
    fields["nodes"] = [facts.host] if facts.host else None
    if attempts:
        fields |= origin(attempts[-1], found)
    return client.start_attempt(run, **fields), True


def _send_checkpoints(
    client: Client, run: Run, attempt: Attempt, found: Gathered, report: FileReport, tier: str
) -> None:
    if not found.saved:
        return
    recorded, benchmarks = _recorded(client, run, attempt), known_benchmarks(client, run.project)
    items = []
    for saved in found.saved:
        if saved.step in recorded:
            report.known += 1
            report.scores += _add_scores(client, recorded[saved.step], scores_at(saved, benchmarks), report)
        elif found.rest_may_come and (found.last_step is None or saved.step >= found.last_step):
            report.skip(
                f"artifact {saved.name}", f"the row of its step {saved.step} may still be written; run it again"
            )
        else:
            items.append(registration(run, attempt, found, saved, tier, benchmarks))
    report.scores += sum(len(item.get("scores", ())) for item in items)
    for start in range(0, len(items), BATCH):
        report.checkpoints += _register(client, items[start : start + BATCH], report)


def _recorded(client: Client, run: Run, attempt: Attempt) -> dict[int, str]:
    """Step to id of the attempt's checkpoints; of two kinds at one step, the archive."""
    where = f"project = {literal(run.project)} and run.name = {literal(run.name)} and attempt = {attempt.number}"
    rows = sorted(client.iter_checkpoints(filter=where, page_size=1_000), key=lambda each: each.kind == "archive")
    return {each.step: each.id for each in rows if each.step is not None}


def _add_scores(client: Client, checkpoint: str, scores: Sequence[Mapping[str, Any]], report: FileReport) -> int:
    """Evaluations trail the training: what the history says by now is added; what is recorded adds nothing."""
    if not scores:
        return 0
    try:
        return client.record_scores(checkpoint, scores).recorded
    except (Invalid, Conflict) as fault:
        report.skip(f"scores of checkpoint {checkpoint}", f"the service refuses them: {fault.detail}")
        return 0


def _register(client: Client, items: Sequence[Mapping[str, Any]], report: FileReport) -> int:
    """A batch is all or none, so what is refused is found one by one."""
    try:
        return len(client.register_batch(items).results)
    except (Invalid, Conflict) as fault:
        if len(items) == 1:
            report.skip(f"checkpoint of step {items[0]['step']}", f"the service refuses it: {fault.detail}")
            return 0
    half = len(items) // 2
    return _register(client, items[:half], report) + _register(client, items[half:], report)


def _send_curves(client: Client, run: Run, attempt: Attempt, found: Gathered, report: FileReport) -> None:
    named = [(name, curve) for name, curve in found.curves.items() if is_name(name)]
    for start in range(0, len(named), CURVES_AT_ONCE):
        some = named[start : start + CURVES_AT_ONCE]
        there = {
            curve.name: frozenset(curve.steps)
            for curve in client.read_series(run, *(name for name, _ in some))
            if curve.attempt == attempt.number
        }
        stretches = list(_new_points(some, there, attempt.number))
        if stretches:
            report.points += client.record_series(run, stretches)


def _new_points(
    curves: Sequence[tuple[str, Any]], there: Mapping[str, frozenset[int]], attempt: int
) -> Iterator[dict[str, Any]]:
    for name, curve in curves:
        steps, values = curve.points()
        known = there.get(name, frozenset())
        new = [(step, value) for step, value in zip(steps, values, strict=True) if step not in known]
        if new:
            new_steps, new_values = zip(*new, strict=True)
            yield {"name": name, "attempt": attempt, "steps": list(new_steps), "values": list(new_values)}


def _end(client: Client, run: Run, attempt: Attempt, found: Gathered) -> None:
    """The state of the attempt. Whether a run without exit crashed is only told by its age, so it is `lost`."""
    changes: dict[str, Any] = {"state": ENDED.get(found.state, "running"), "ended_at": None}
    if found.last_step is not None:
        changes["step"] = found.last_step
    if found.last_at is not None:
        changes["heartbeat_at"] = moment(found.last_at)
    if found.facts.exit is not None:
        changes["exit_code"] = found.facts.exit.code
    if found.state in ENDED:
        changes["ended_at"] = moment(found.last_at or found.facts.started_at) or moment(found.file.stat().st_mtime)
    try:
        client.patch_attempt(run, attempt.number, **changes)
    except (Invalid, Conflict) as fault:
        raise CairnError(f"The end of attempt {attempt.number} of {run} cannot be recorded: {fault.detail}") from fault
