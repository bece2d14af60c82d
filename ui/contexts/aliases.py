"""What the templates of aliases may use."""

from dataclasses import dataclass
from datetime import datetime

from ui.contexts.compare import VerdictRow
from ui.contexts.shared import Answer, CheckpointRef, Command


@dataclass(frozen=True)
class AliasRow:
    project: str
    name: str
    href: str
    target: CheckpointRef | None
    moved_at: datetime | None
    moved_by: str | None
    reason: str | None


@dataclass(frozen=True)
class AliasesContext:
    answer: Answer
    rows: tuple[AliasRow, ...]
    empty: tuple[Command, ...] = ()


@dataclass(frozen=True)
class AliasMoveRow:
    target: CheckpointRef | None
    moved_at: datetime
    moved_by: str | None
    reason: str | None
    current: bool
    back: bool = False


@dataclass(frozen=True)
class AliasContext:
    """`scores` and `capabilities`: what becomes of the scores where the alias is moved from `current` to `proposed`."""

    project: str
    name: str
    answer: Answer
    current: CheckpointRef | None
    proposed: CheckpointRef | None
    consequence: str
    back_to: CheckpointRef | None
    history: tuple[AliasMoveRow, ...]
    scores: Answer | None = None
    capabilities: tuple[VerdictRow, ...] = ()
    reach: float = 0.1
    compare_href: str = ""
    typed: str = ""
    problem: str = ""
    may_move: bool = False
    notice: str = ""
    going_back: bool = False
    may_force: bool = False
