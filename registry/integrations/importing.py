"""The job that imports a tracker's experiment or project: batch by batch, and again from where it was after a kill.

Every step may be repeated. Calls to the tracker are made between transactions, and each transaction is small enough
that a training's record, which may wait for the same writer, does not wait long.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy.orm import Session

from registry.config import Settings
from registry.integrations.apply import Applied, apply_run
from registry.integrations.checkpoints import Counts, apply_checkpoints, runs_with_new_steps
from registry.integrations.curves import apply_series, thinned
from registry.integrations.fields import doubtful_tags
from registry.integrations.open import Place, open_reader
from registry.integrations.registrations import Found
from registry.integrations.report import ImportReport
from registry.integrations.shapes import Skipped, TrackerCheckpoint, TrackerReader, TrackerRun, TrackerSeries
from registry.jobs.claims import Claim
from registry.models import Project
from registry.trackers.settings import Tracking, read_tracking

CHECKPOINTS_AT_ONCE: Final = 1_000  # of one transaction
RUNS_AT_ONCE: Final = 25
ENDED_SECONDS: Final = 6 * 3_600  # a run that has ended there is still told of what changes here without an event


def import_place(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    """Arguments: kind, uri, entity, project (the tracker's). Gives the report. Raises the tracker errors."""
    said = claim.arguments
    place = Place(said["kind"], said["uri"], said.get("entity"), said.get("project"))
    position = claim.position or {}
    report = ImportReport.from_json(position.get("report"))
    reader, done = open_reader(place, settings), int(position.get("done", 0))
    for batch in reader.batches(position.get("from")):
        bring_in(claim, reader, batch.runs, report)
        done += len(batch.runs)
        total = batch.total if batch.total is not None else done if batch.position is None else None
        with claim.write() as session:
            words = f"{report.checkpoints_created:,} checkpoints of {report.runs:,} runs"
            where = {"from": batch.position, "report": report.to_json(), "done": done}
            claim.save(session, position=where, done=done, total=total, words=words)
    return report.to_json()


def bring_in(
    claim: Claim, reader: TrackerReader, runs: Sequence[TrackerRun], report: ImportReport, link: Any = None
) -> list[Applied]:
    """Apply some runs with their curves and checkpoints. `link`: the one that a single run is read through."""
    usable = []
    for run in runs:
        if run.deleted and link is None:
            report.skip("", [Skipped(run.name, "the run is deleted in the tracker")])
        else:
            usable.append(run)
    done: list[Applied] = []
    for at in range(0, len(usable), RUNS_AT_ONCE):
        some = usable[at : at + RUNS_AT_ONCE]
        with claim.write() as session:
            tracking = read_tracking(session, claim.project_id)
            pairs = [(run, _run(session, claim, run, report, tracking, link)) for run in some]
        _bring_checkpoints(claim, reader, [pair for pair in pairs if not pair[0].deleted], report)
        done += [applied for _, applied in pairs]
    return done


def _run(
    session: Session, claim: Claim, run: TrackerRun, report: ImportReport, tracking: Tracking, link: Any
) -> Applied:
    ended = ENDED_SECONDS if tracking.pushes(run.kind) else None
    applied = apply_run(
        session, claim.project_id, run, link=link, refresh_seconds=tracking.refresh_seconds, ended_seconds=ended
    )
    report.runs += 1
    report.runs_created += applied.created
    report.runs_unchanged += applied.unchanged
    report.fields_changed += applied.changed
    report.note(f"{run.name}: {applied.note}" if applied.note else "")
    if not applied.unchanged:
        report.skip(run.name, [*run.skipped, *doubtful_tags(run)])
        for note in run.notes:
            report.note(f"{run.name}: {note}")
    return applied


def _bring_checkpoints(
    claim: Claim, reader: TrackerReader, pairs: Sequence[tuple[TrackerRun, Applied]], report: ImportReport
) -> None:
    by_run: dict[str, list[TrackerCheckpoint]] = {run.run_id: [] for run, _ in pairs}
    for run_id, checkpoint in reader.checkpoints([run for run, _ in pairs]):
        by_run[run_id].append(checkpoint)
    found = [Found(applied, run, by_run[run.run_id]) for run, applied in pairs]
    with claim.database.read() as session:
        fresh = runs_with_new_steps(session, claim.project_id, found)
    # The curves that changed since the last time; all of them where a new checkpoint needs its exact values.
    known = [{} if each.applied.run_id in fresh else each.applied.curves for each in found]
    changed = [not each.applied.unchanged or each.applied.run_id in fresh for each in found]
    reader.read_ahead([(each.run, has) for each, has, yes in zip(found, known, changed, strict=True) if yes])
    waiting: list[Found] = []
    for each, has, yes in zip(found, known, changed, strict=True):
        waiting.append(_with_curves(claim, reader, each, has, report) if yes else each)
        if sum(len(each.checkpoints) for each in waiting) >= CHECKPOINTS_AT_ONCE:
            _write(claim, waiting, report)
            waiting = []
    if waiting:
        _write(claim, waiting, report)


def _with_curves(
    claim: Claim, reader: TrackerReader, found: Found, known: Mapping[str, str], report: ImportReport
) -> Found:
    steps = {each.step for each in found.checkpoints if each.step is not None}
    curves: list[TrackerSeries] = []
    marks: dict[str, str] = {}
    for curve, mark in reader.series(found.run, known):
        curves.append(thinned(curve, steps))
        marks[curve.name] = mark
    if curves:
        with claim.write() as session:
            added, skipped = apply_series(session, claim.project_id, found.applied, curves, marks)
        report.points_recorded += added
        report.skip(found.run.name, skipped)
    return replace(found, curves={curve.name: curve for curve in curves if curve.name})


def _write(claim: Claim, waiting: Sequence[Found], report: ImportReport) -> None:
    with claim.write() as session:
        project = session.get_one(Project, claim.project_id).name
        counts: Counts = apply_checkpoints(session, claim.project_id, project, waiting)
    report.checkpoints_created += counts.created
    report.checkpoints_met += counts.met
    report.scores_recorded += counts.scores
    report.skip("", counts.skipped)
