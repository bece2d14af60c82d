"""What each attempt of a run saved, and how far that shows that it came."""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.models import Checkpoint
from registry.types import CheckpointState


@dataclass(frozen=True, slots=True)
class Saves:
    """`checkpoints` are those that were not deleted; `last_step` is of all, since a deleted one was reached too."""

    checkpoints: int
    last_step: int


def saves_by_attempt(session: Session, project_id: int, run_id: int) -> dict[int, Saves]:
    """By attempt number; an attempt that saved nothing is not in it."""
    kept = func.count().filter(Checkpoint.state != CheckpointState.DELETED.value)
    query = (
        select(Checkpoint.attempt_number, kept, func.max(Checkpoint.step))
        .where(Checkpoint.project_id == project_id, Checkpoint.run_id == run_id)
        .group_by(Checkpoint.attempt_number)
    )
    return {number: Saves(checkpoints, last) for number, checkpoints, last in session.execute(query)}
