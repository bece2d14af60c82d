"""Import eval result files: read by the client's readers (`cairn.formats`), kept as scores of one checkpoint each.

A file is imported whole or not at all; what a reader left out is reported with its reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from cairn.formats import EvalFile, EvalScore, Refused, read_evals
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.commands import BatchItem, register_batch
from registry.checkpoints.detail import project_of
from registry.checkpoints.registration import Registration
from registry.errors import FieldError, Invalid
from registry.evals.scores import NewScore, record_scores
from registry.models import Attempt, Checkpoint
from registry.runs import run_ids_by_name


class NothingImported(Invalid):
    code = "nothing-imported"
    title = "None of the files could be imported"


class NoTarget(Invalid):
    code = "no-import-target"
    title = "Which checkpoint the results belong to is not known"


@dataclass(frozen=True)
class Upload:
    name: str
    content: bytes


@dataclass(frozen=True)
class Target:
    """The checkpoint that was evaluated: its id, or project, run and step (else each file must say its own)."""

    checkpoint_id: int | None = None
    project: str | None = None
    run: str | None = None
    step: int | None = None


@dataclass(frozen=True)
class SkippedItem:
    item: str
    reason: str


@dataclass(frozen=True)
class FileReport:
    """What became of one file. `imported` counts its scores; `recorded` those that were new."""

    file: str
    format: str | None
    imported: int
    recorded: int
    checkpoint_id: int | None
    skipped: Sequence[SkippedItem]
    notes: Sequence[str] = ()


def import_results(
    session: Session, uploads: Sequence[Upload], target: Target, *, format: str = "auto"
) -> list[FileReport]:
    """Import each file into its checkpoint, which is made where it is missing. Raises NoTarget, NothingImported."""
    if target.checkpoint_id is None and not (target.project and target.run):
        message = "give checkpoint_id, or project and run (and step, unless the files say it)"
        raise NoTarget(
            f"Where do these results belong? {message[0].upper()}{message[1:]}.", errors=[FieldError("", message)]
        )
    reports = [_import_one(session, upload, target, format) for upload in uploads]
    if not any(report.format for report in reports):
        errors = [
            FieldError(f"/file/{at}", item.reason) for at, report in enumerate(reports) for item in report.skipped
        ]
        first = reports[0]
        raise NothingImported(
            f"{len(reports)} file(s) refused. The first, {first.file!r}: {first.skipped[0].reason}", errors=errors
        )
    return reports


def _import_one(session: Session, upload: Upload, target: Target, format: str) -> FileReport:
    try:
        found = read_evals(upload.content, format=format, name=upload.name)
        project_id, checkpoint_id = _checkpoint(session, target, found)
    except (Refused, NoTarget) as refusal:
        return FileReport(upload.name, None, 0, 0, None, [SkippedItem(upload.name, str(refusal))])
    scores = [(checkpoint_id, _score(score)) for score in found.scores]
    recorded = record_scores(session, project_id, scores)
    skipped = [SkippedItem(item.item, item.reason) for item in found.skipped]
    return FileReport(upload.name, found.format, len(scores), recorded, checkpoint_id, skipped, found.problems)


def _checkpoint(session: Session, target: Target, found: EvalFile) -> tuple[int, int]:
    if target.checkpoint_id is not None:
        return project_of(session, target.checkpoint_id), target.checkpoint_id
    assert target.project is not None
    assert target.run is not None
    step = target.step if target.step is not None else found.step
    if step is None:
        raise NoTarget("The file does not say at which step it was evaluated; give a step.")
    known = run_ids_by_name(session, [(target.project, target.run)])
    if known:
        project_id, run_id = known[target.project, target.run]
        existing = _at_step(session, project_id, run_id, step)
        if existing is not None:
            return project_id, existing
    (done,) = register_batch(session, [BatchItem(target.project, target.run, Registration(step))])
    return project_of(session, done.checkpoint_id), done.checkpoint_id


def _at_step(session: Session, project_id: int, run_id: int, step: int) -> int | None:
    """The checkpoint at a step: a live one before superseded ones, the newest attempt before older ones."""
    live = Attempt.live_through_step.is_(None) | (Attempt.live_through_step >= Checkpoint.step)
    query = (
        select(Checkpoint.id)
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(Checkpoint.project_id == project_id, Checkpoint.run_id == run_id, Checkpoint.step == step)
        .order_by(live.desc(), Checkpoint.attempt_number.desc(), Checkpoint.kind)
    )
    return session.scalars(query.limit(1)).one_or_none()


def _score(score: EvalScore) -> NewScore:
    values: Mapping[str, Any] = {
        name: getattr(score, name) for name in NewScore.__dataclass_fields__ if hasattr(score, name)
    }
    return replace(NewScore(score.benchmark, score.value), **{**values, "evaluated_at": _time(score.evaluated_at)})


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
