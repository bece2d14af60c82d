"""What each attempt of a run saved, and how far it came."""

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.models import Attempt, Checkpoint, SeriesChunk
from registry.types import CheckpointState


@dataclass(frozen=True, slots=True)
class Progress:
    """`checkpoints` are those that were not deleted; `saved_step` is of all, since a deleted one was reached too.

    `reached_step`: the last that a save, a heartbeat or a curve tells of.
    """

    checkpoints: int = 0
    saved_step: int | None = None
    reached_step: int | None = None


def progress_by_attempt(session: Session, project_id: int, run_id: int) -> dict[int, Progress]:
    """Of every attempt of the run, by its number."""
    kept = func.count().filter(Checkpoint.state != CheckpointState.DELETED.value)
    query = (
        select(Checkpoint.attempt_number, kept, func.max(Checkpoint.step))
        .where(Checkpoint.project_id == project_id, Checkpoint.run_id == run_id)
        .group_by(Checkpoint.attempt_number)
    )
    saves = {number: (count, last) for number, count, last in session.execute(query)}
    logged = (
        select(func.max(SeriesChunk.last_step))
        .where(SeriesChunk.project_id == project_id, SeriesChunk.attempt_id == Attempt.id)
        .scalar_subquery()
    )
    attempts = select(Attempt.number, Attempt.heartbeat_step, logged).where(
        Attempt.project_id == project_id, Attempt.run_id == run_id
    )
    found = {}
    for number, *told in session.execute(attempts):
        count, saved = saves.get(number, (0, None))
        known = [step for step in (*told, saved) if step is not None]
        found[number] = Progress(count, saved, max(known, default=None))
    return found
