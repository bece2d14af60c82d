"""What an attempt says it loaded, and the checkpoint that this means, now or once its record arrives."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from registry.errors import FieldError, Invalid
from registry.ids import from_text, to_text
from registry.models import Attempt, Checkpoint, Run
from registry.names import run_name
from registry.types import Kind


class BadResumePoint(Invalid):
    code = "bad-resume-point"
    title = "An attempt cannot resume from there"


@dataclass(frozen=True)
class ResumePoint:
    """What an attempt loaded: a checkpoint's id, or where its record will be found. `run` None is the same run."""

    checkpoint_id: int | None = None
    run: str | None = None
    attempt: int | None = None
    step: int | None = None
    kind: str | None = None


WAITING = select(Attempt).where(
    Attempt.project_id == bindparam("project"),
    Attempt.resumed_from_step.is_not(None),
    Attempt.resumed_from_checkpoint_id.is_(None),
)


def resolve_waiting(session: Session, project_id: int, run_ids: Sequence[int]) -> None:
    """Tie attempts to the checkpoints they said they loaded, whose records have arrived only now."""
    waiting = session.scalars(WAITING, {"project": project_id}).all()
    if not waiting:
        return
    names = dict(
        session.execute(select(Run.name, Run.id).where(Run.project_id == project_id, Run.id.in_(run_ids))).all()
    )
    for attempt in waiting:
        source = attempt.run_id if attempt.resumed_from_run is None else names.get(attempt.resumed_from_run)
        if source is not None and source in run_ids:
            attempt.resumed_from_checkpoint_id = _checkpoint_at(
                session,
                project_id,
                source,
                attempt.resumed_from_attempt,
                attempt.resumed_from_step,
                attempt.resumed_from_kind,
            )
    session.flush()


def resolve(session: Session, run: Run, point: ResumePoint | None) -> ResumePoint | None:
    """The point with everything known filled in. `run` becomes None where it is this run."""
    if point is None:
        return None
    if point.checkpoint_id is not None:
        found = session.execute(
            select(Checkpoint, Run.name)
            .join(Run, Run.id == Checkpoint.run_id)
            .where(Checkpoint.project_id == run.project_id, Checkpoint.id == point.checkpoint_id)
        ).one_or_none()
        if found is None:
            message = f"project has no checkpoint {to_text(point.checkpoint_id)}"
            raise BadResumePoint(f"This {message}.", errors=[FieldError("/resumed_from", message)])
        checkpoint, name = found
        elsewhere = None if checkpoint.run_id == run.id else name
        return ResumePoint(checkpoint.id, elsewhere, checkpoint.attempt_number, checkpoint.step, checkpoint.kind)
    if point.step is None:
        message = "give a checkpoint id, or a step with run, attempt and kind as far as they are known"
        raise BadResumePoint(f"'resumed_from' is incomplete: {message}.", errors=[FieldError("/resumed_from", message)])
    other, source = _other_run(session, run, point.run)
    number = point.attempt
    if number is None and other is None:
        number = newest_number(session, run) or None
    checkpoint_id = None
    if source is not None:
        checkpoint_id = _checkpoint_at(session, run.project_id, source, number, point.step, point.kind)
    return ResumePoint(checkpoint_id, other, number, point.step, point.kind)


def _other_run(session: Session, run: Run, said: str | None) -> tuple[str | None, int | None]:
    """(name, id) of the run that a resume point names by name or id: (None, own id) for this run itself."""
    said = None if said is None else run_name(said)
    if said is None or said == run.name or from_text(said) == run.id:
        return None, run.id
    identity = from_text(said)
    query = select(Run.id, Run.name).where(Run.project_id == run.project_id)
    row = session.execute(query.where((Run.name == said) | (Run.id == (identity or 0)))).first()
    return (row.name, row.id) if row is not None else (said, None)


def _checkpoint_at(
    session: Session, project_id: int, run_id: int, number: int | None, step: int | None, kind: str | None
) -> int | None:
    query = select(Checkpoint.id).where(
        Checkpoint.project_id == project_id, Checkpoint.run_id == run_id, Checkpoint.step == step
    )
    if number is not None:
        query = query.where(Checkpoint.attempt_number == number)
    if kind is not None:
        query = query.where(Checkpoint.kind == kind)
    return session.scalars(
        query.order_by(Checkpoint.attempt_number.desc(), (Checkpoint.kind == Kind.ARCHIVE).desc()).limit(1)
    ).one_or_none()


def newest_number(session: Session, run: Run) -> int:
    """The number of a run's newest attempt; 0 where there is none."""
    return (
        session.scalar(
            select(func.max(Attempt.number)).where(Attempt.project_id == run.project_id, Attempt.run_id == run.id)
        )
        or 0
    )
