"""What the restore plan on a checkpoint's page may use."""

from dataclasses import dataclass

from ui.contexts.shared import Answer, Command


@dataclass(frozen=True)
class CopyRow:
    """A recorded copy, the fastest that can be used first. `expected`, `p95`: how long a restore from it takes."""

    uri: str
    tier: str
    usable: bool
    reason: str
    expected: str
    p95: str
    terms: str


@dataclass(frozen=True)
class FitRow:
    """What becomes of one piece in the layout asked for."""

    piece: str
    verdict: str
    tone: str
    words: str


@dataclass(frozen=True)
class RestoreBlock:
    """`layout`, `rto` and `hosts` are the question as the address has it; `asked`: whether it names a layout."""

    answer: Answer
    path: str
    copies: tuple[CopyRow, ...]
    fits: tuple[FitRow, ...]
    notes: tuple[str, ...]
    layout: str
    rto: str
    hosts: str
    asked: bool
    command: Command | None = None
