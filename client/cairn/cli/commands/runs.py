"""`cairn run`: what was trained."""

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

import click

from cairn.cli.lazy import HintingGroup
from cairn.cli.output import json_option, points, print_facts, print_json, print_rows, say, say_if_cut
from cairn.cli.targets import find_run
from cairn.client import Client
from cairn.types import Attempt, Checkpoint, CheckpointRef, Profile, Run

ATTEMPTS = 10  # the newest are shown
SCORES = 4  # columns beside the newest checkpoints
EVALUATED = 8  # of those shown, from whose scores the columns are chosen
MOST_CANDIDATES = 100  # that the service gives of those to resume from
UNREPORTED = "not reported"
SILENT_AFTER = timedelta(hours=24)
STANDINGS = 6  # capabilities on a line


@click.group(cls=HintingGroup)
def run() -> None:
    """List runs, or show one."""


@run.command("list")
@click.option("--project", help="Only runs of this project.")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@json_option
def list_runs(project: str | None, limit: int, as_json: bool) -> int:
    """The runs that this token may see."""
    with Client() as client:
        found = list(client.list_runs(project=project, limit=limit))
    if as_json:
        print_json({"items": [each.raw for each in found]})
    elif found:
        columns = ("run", "kind", "owner", "team", "model", "started", "id")
        print_rows(
            columns,
            [
                (str(each), each.kind, each.owner, each.team, each.model_family, each.started_at, each.id)
                for each in found
            ],
        )
        say_if_cut(len(found), limit)
    else:
        say("No runs yet. `cairn record --project P --run R --step N` records the first checkpoint.")
    return 0 if found else 1


@run.command()
@click.argument("run", metavar="PROJECT/RUN|ID")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="Newest checkpoints shown.")
@json_option
def show(run: str, limit: int, as_json: bool) -> None:
    """One run: its attempts, its newest scores, its newest checkpoints.

    The scores are one benchmark for each capability that the newest evaluated checkpoints were measured on, the most
    frequent first; `cairn find --columns` shows others, `cairn show CHECKPOINT` all of one.
    """
    with Client() as client:
        found = find_run(client, run)
        attempts = client.list_attempts(found)
        profiles = _newest_profiles(client, found, limit)
        profile, columns = next(iter(profiles), None), _score_columns(profiles)
        checkpoints = _newest(client, found, limit, columns)
        barred = _barred(client, found, limit) if checkpoints else {}
    if as_json:
        answers = {"run": found.raw, "attempts": [each.raw for each in attempts]}
        newest = {"newest_scored": None if profile is None else profile.raw}
        print_json({**answers, **newest, "checkpoints": [each.raw for each in checkpoints]})
        return
    _print_facts(found, attempts, profile, checkpoints)
    if not checkpoints:
        named = f"--project {found.project} --run {shlex.quote(found.name)}"
        say(f"No checkpoint of it is recorded yet. `cairn record {named}` does.")
        return
    click.echo()
    _print_attempts(attempts)
    click.echo()
    _print_checkpoints(checkpoints, columns, barred)
    say_if_cut(len(checkpoints), limit)


def _newest(client: Client, run: Run, limit: int, columns: Sequence[str], only: str = "") -> list[Checkpoint]:
    where, order = f"run.id = '{run.id}'{only}", "attempt desc, step desc"
    return list(client.iter_checkpoints(filter=where, order_by=order, fields=columns or None, limit=limit))


def _barred(client: Client, run: Run, limit: int) -> dict[str, str]:
    """Of the committed checkpoints those that nothing resumes from by itself, and the word for it."""
    words = {"suspect": "suspect", "quarantine": "quarantined"}
    passed = client.resume_plan(run, require=("weights",), limit=min(limit, MOST_CANDIDATES)).excluded
    return {each.checkpoint.id: words[each.filter] for each in passed if each.filter in words}


def _newest_profiles(client: Client, run: Run, limit: int) -> list[Profile]:
    """What the newest checkpoints that were evaluated are good at: scores trail training."""
    scored = _newest(client, run, min(limit, EVALUATED), (), " and scored")
    return [client.profile(each) for each in scored]


def _score_columns(profiles: Sequence[Profile]) -> list[str]:
    """The most frequent of those that the checkpoints were measured by: one mistaken name hides no others."""
    counts = Counter(column for profile in profiles for column in _columns_of(profile))
    return [column for column, _ in counts.most_common(SCORES)]


def _columns_of(profile: Profile) -> list[str]:
    """A benchmark for each of the first capabilities, measured as a whole; else those of no capability."""
    from cairn.score_names import score_field

    firsts = [next((each for each in standing.benchmarks if not each.parts), None) for standing in profile.capabilities]
    named = [score_field(each.benchmark, each.metric, each.filter) for each in firsts if each is not None]
    return named or [score_field(name, "", "").removesuffix(".none.none") for name in profile.unknown]


def _print_facts(run: Run, attempts: Sequence[Attempt], profile: Profile | None, newest: Sequence[Checkpoint]) -> None:
    names = ("kind", "owner", "team", "model_family", "parameter_count", "started_at", "tags")
    facts = [("run", str(run)), ("id", run.id), *((name, getattr(run, name)) for name in names)]
    if attempts:
        state = _newest_state(attempts[-1], newest)
        told = "nobody reports its state" if state == UNREPORTED else state
        last = "" if len(attempts) == 1 else "the last: " if state == UNREPORTED else "the last "
        facts.append(("attempts", f"{len(attempts)}, {last}{told}"))
    if newest:
        facts.append(("newest checkpoint", f"{_place(newest[0])}, id {newest[0].id}"))
    if profile is not None:
        facts.append(("newest scores", f"{_place(profile.checkpoint)}{_standings(profile)}"))
    elif newest:
        facts.append(("newest scores", "nothing was evaluated yet"))
    print_facts(facts)


def _newest_state(attempt: Attempt, newest: Sequence[Checkpoint]) -> str:
    """Silent where it should run and gave no sign of life for a day, as its page says."""
    state = _state(attempt, False)
    signs = [each for each in (attempt.heartbeat_at, newest[0].saved_at if newest else None) if each is not None]
    is_silent = bool(signs) and datetime.now(timezone.utc) - max(signs) > SILENT_AFTER
    return "silent" if state == "running" and is_silent else state


def _place(checkpoint: CheckpointRef) -> str:
    return f"step {checkpoint.step} of attempt {checkpoint.attempt}"


def _standings(profile: Profile) -> str:
    """': math 87 %, code 45 %', percentiles among the project's checkpoints."""
    ranked = [each for each in profile.capabilities if each.percentile is not None]
    told = [f"{each.capability} {points(each.percentile)}" for each in ranked[:STANDINGS]]
    return f"; percentiles in its project: {', '.join(told)}" if told else ""


def _print_attempts(attempts: Sequence[Attempt]) -> None:
    columns = ("attempt", "state", "started", "ended", "step", "exit code", "went on from", "superseded", "reason")
    loaded = [each.raw.get("resumed_from") or {} for each in attempts]
    newer = {each.get("attempt") for each in loaded if not each.get("run")}
    shown = attempts[-ATTEMPTS:]
    print_rows(columns, [(each.number, _state(each, each.number in newer), *_told(each)) for each in shown])
    if len(attempts) > ATTEMPTS:
        say(f"The last {ATTEMPTS} of {len(attempts)} attempts are shown; --json has all.")


def _state(attempt: Attempt, is_followed: bool) -> str:
    """Where another attempt went on from it, it does not run any more, whatever was said last.

    Of one that was only made for its checkpoints the state is a default, which nobody has said.
    """
    spoken = (attempt.key, attempt.started_at, attempt.ended_at, attempt.heartbeat_at)
    said = (*spoken, attempt.raw.get("resumed_from"), attempt.raw.get("restart") or None)
    if attempt.state == "running" and all(each is None for each in said):
        return UNREPORTED
    return "ended, nobody said how" if is_followed and attempt.state == "running" else str(attempt.state)


def _told(attempt: Attempt) -> Iterator[Any]:
    raw = attempt.raw
    yield attempt.started_at
    yield attempt.ended_at
    yield _steps(attempt)
    yield raw.get("exit_code")
    source = raw.get("resumed_from") or {}
    yield _source(source) if source else "the start" if raw.get("restart") else None
    live = raw.get("live_through_step")
    yield None if live is None else "all of it" if live < 0 else f"beyond step {live}"
    yield raw.get("reason")


def _steps(attempt: Attempt) -> str | None:
    """The last step that was made, and the last that was saved where that is another."""
    reached, saved = attempt.reached_step, attempt.saved_step
    if reached is None:  # an older service does not say it
        reached = attempt.raw.get("step")
    if reached is None:
        return None
    return str(reached) if saved in (None, reached) else f"{reached}, saved {saved}"


def _source(loaded: dict[str, Any]) -> str:
    """Where an attempt went on from; `run` is said where it is another run's."""
    if loaded.get("step") is None:
        return str(loaded.get("checkpoint_id") or "?")
    attempt = "" if loaded.get("attempt") is None else f" of attempt {loaded['attempt']}"
    return f"step {loaded['step']}{attempt}" + (f", run {loaded['run']}" if loaded.get("run") else "")


def _print_checkpoints(checkpoints: Sequence[Checkpoint], columns: Sequence[str], barred: Mapping[str, str]) -> None:
    from cairn.cli.commands.find import STANDING, field_value
    from cairn.score_names import in_short

    rest = (STANDING, "resumability", "saved_at")
    names = ("checkpoint", "loss", *map(in_short, columns), *rest, "id")
    fields = ("loss", *columns, *rest)

    def cell(each: Checkpoint, name: str) -> Any:
        return barred.get(each.id) if name == STANDING and each.id in barred else field_value(each.raw, name)

    print_rows(names, [(str(each), *(cell(each, name) for name in fields), each.id) for each in checkpoints])
