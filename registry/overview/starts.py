"""Where a page begins that nobody asked a question of: runs that have an answer to show."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import func, literal, select, true
from sqlalchemy.orm import Session

from registry.filters.columns import presence
from registry.models import Checkpoint, Project, Replica, Score
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


def newest_evaluated(session: Session, project_ids: Sequence[int]) -> int | None:
    """Of these projects the one whose newest checkpoint with a result was recorded last; None where none has any.

    One step down an index for each: no index tells when a result arrived.
    """
    newest = (
        select(Score.checkpoint_id)
        .where(Score.project_id == Project.id)
        .order_by(Score.checkpoint_id.desc())
        .limit(1)
        .correlate(Project)
        .scalar_subquery()
    )
    found = session.execute(select(Project.id, newest).where(Project.id.in_(project_ids)))
    return max(((newest, project) for project, newest in found if newest is not None), default=(0, None))[1]
