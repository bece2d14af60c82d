"""Shapes of aliases."""

from typing import Self

from api.schemas.common import Answer, CheckpointRef, Id, LongText, Shape, Time
from registry.aliases import AliasRow, Move
from registry.checkpoints.rows import CheckpointIdentity


class AliasIn(Shape):
    """`expected`, for compare and set: the checkpoint that the alias must point at now; null: no such alias yet.

    `force`, with a reason, takes a checkpoint that is suspect.
    """

    checkpoint_id: Id
    reason: LongText | None = None
    expected: Id | None = None
    force: bool = False


class AliasRollbackIn(Shape):
    """`expected`: what the alias must point at now, so that a call that is sent twice goes back once."""

    reason: LongText | None = None
    expected: Id | None = None
    force: bool = False


class AliasOut(Answer):
    """`warnings`: a name such as `final` or `latest` whose run has committed a later checkpoint."""

    project: str
    name: str
    checkpoint: CheckpointRef
    moved_at: Time
    warnings: list[str]

    @classmethod
    def from_row(cls, row: AliasRow, target: CheckpointIdentity, warning: str | None) -> Self:
        return cls.model_construct(
            project=target.project,
            name=row.name,
            checkpoint=CheckpointRef.from_row(target),
            moved_at=row.moved_at,
            warnings=[] if warning is None else [warning],
        )


class AliasPage(Answer):
    items: list[AliasOut]
    next_cursor: str | None


class MoveOut(Answer):
    checkpoint: CheckpointRef
    previous: CheckpointRef | None
    reason: str | None
    moved_by: str
    moved_at: Time
    rollback: bool

    @classmethod
    def from_move(cls, move: Move, known: dict[int, CheckpointIdentity]) -> Self:
        previous = None if move.previous_id is None else CheckpointRef.from_row(known[move.previous_id])
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(known[move.checkpoint_id]),
            previous=previous,
            reason=move.reason,
            moved_by=move.moved_by,
            moved_at=move.moved_at,
            rollback=move.is_rollback,
        )


class MovePage(Answer):
    items: list[MoveOut]
    next_cursor: str | None
