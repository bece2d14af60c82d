"""Where a page begins that nobody asked a question of: runs that have an answer to show."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import func, literal, select, true
from sqlalchemy.orm import Session

from registry.filters.columns import presence
from registry.models import Checkpoint, Replica
from registry.types import CheckpointState, PieceName, Presence

TO_SERVE: Final = (PieceName.WEIGHTS,)
TO_TRAIN: Final = (PieceName.WEIGHTS, PieceName.OPTIMIZER, PieceName.DATA_POSITION)


def has_way_back(
    session: Session, project_id: int, run_id: int, pieces: Sequence[PieceName], *, besides: int | None = None
) -> bool:
    """Whether the run has a committed checkpoint with these pieces and a present copy, other than `besides`.

    What a rollback asks beyond that (scores, the live path) it says itself. One row of the run's index is enough.
    """
    copy = select(Replica.id).where(
        Replica.project_id == Checkpoint.project_id,
        Replica.checkpoint_id == Checkpoint.id,
        Replica.state == "present",
    )
    found: Any = (
        select(literal(1))
        .where(
            Checkpoint.project_id == project_id,
            Checkpoint.run_id == run_id,
            Checkpoint.state == CheckpointState.COMMITTED.value,
            Checkpoint.id != besides if besides is not None else true(),
            copy.correlate(Checkpoint).exists(),
            *(presence(piece) == Presence.PRESENT.value for piece in pieces),
        )
        .limit(1)
    )
    return session.execute(found).first() is not None


def newest_pair(session: Session, project_id: int, run_id: int) -> tuple[int, int] | None:
    """The two newest committed checkpoints of the run's newest attempt, older first; None where there are not two."""
    newest = (
        select(func.max(Checkpoint.attempt_number))
        .where(
            Checkpoint.project_id == project_id,
            Checkpoint.run_id == run_id,
            Checkpoint.state == CheckpointState.COMMITTED.value,
        )
        .scalar_subquery()
    )
    query = (
        select(Checkpoint.id)
        .where(
            Checkpoint.project_id == project_id,
            Checkpoint.run_id == run_id,
            Checkpoint.state == CheckpointState.COMMITTED.value,
            Checkpoint.attempt_number == newest,
        )
        .order_by(Checkpoint.step.desc(), Checkpoint.kind)
        .limit(2)
    )
    found = session.scalars(query).all()
    return (found[1], found[0]) if len(found) == 2 else None
