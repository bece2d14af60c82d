"""Names that point at checkpoints."""

from dataclasses import dataclass, field
from datetime import datetime

from cairn.reading import FLAG, MOMENT, TEXT, TEXTS, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef


@dataclass(frozen=True, kw_only=True)
class Alias(Answer):
    """A name that points at one committed checkpoint, such as `production`.

    `warnings`: a name such as `final` whose run has committed a later checkpoint.
    """

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    name: str = field(default="", metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    moved_at: datetime | None = field(default=None, metadata=MOMENT)
    warnings: tuple[str, ...] = field(default=(), metadata=TEXTS)

    def __str__(self) -> str:
        return f"{self.project}/{self.name}"


@dataclass(frozen=True, kw_only=True)
class AliasMove(Answer):
    """One move of an alias; `previous` is None for the first."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    previous: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    reason: str | None = field(default=None, metadata=TEXT)
    moved_by: str = field(default="", metadata=TEXT)
    rollback: bool | None = field(default=None, metadata=FLAG)
    moved_at: datetime | None = field(default=None, metadata=MOMENT)
