"""What an interruption cost in steps: from the last committed checkpoint to the last step that is known."""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.models import Attempt, Checkpoint, SeriesChunk
from registry.types import CheckpointState


@dataclass(frozen=True, slots=True)
class Loss:
    """`steps` None: the last step is not known, or nothing says where the attempt began."""

    last_step: int | None
    steps: int | None
    saved_anything: bool


def loss_of(session: Session, attempt: Attempt, said: int | None = None) -> Loss:
    """The loss of an attempt that stops now. `said`: the last step as the reporter knows it."""
    saved = select(
        func.max(Checkpoint.step), func.max(Checkpoint.step).filter(Checkpoint.state == CheckpointState.COMMITTED.value)
    ).where(Checkpoint.project_id == attempt.project_id, Checkpoint.attempt_id == attempt.id)
    reached, committed = session.execute(saved).one()
    curve = session.scalar(
        select(func.max(SeriesChunk.last_step)).where(
            SeriesChunk.project_id == attempt.project_id, SeriesChunk.attempt_id == attempt.id
        )
    )
    known = [step for step in (said, attempt.heartbeat_step, reached, curve) if step is not None]
    last = max(known, default=None)
    start = committed if committed is not None else _start(attempt)
    steps = None if last is None or start is None else max(last - start, 0)
    return Loss(last, steps, committed is not None)


def _start(attempt: Attempt) -> int | None:
    """The step that the attempt went on from; 0 where it started over, None where nobody said."""
    if attempt.resumed_from_step is not None:
        return attempt.resumed_from_step
    return 0 if attempt.restart or attempt.number == 1 else None
