"""What the restore plan on a checkpoint's page may use."""

from dataclasses import dataclass
from datetime import datetime

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
class DrillLine:
    """A rehearsed restore. `took`: reading, verifying and loading; `words`: what it showed, `figures` by what."""

    when: datetime
    verdict: str
    tone: str
    host: str
    tier: str
    took: str
    words: str
    figures: str = ""


@dataclass(frozen=True)
class RestoreBlock:
    """`layout`, `rto` and `hosts` are the question as the address has it; `asked`: whether it names a layout.

    `proof`: whether a drill has shown that it comes back; `replay`: what has to be trained again.
    """

    answer: Answer
    path: str
    copies: tuple[CopyRow, ...]
    fits: tuple[FitRow, ...]
    notes: tuple[str, ...]
    layout: str
    rto: str
    hosts: str
    asked: bool
    proof: Answer
    replay: str
    drills: tuple[DrillLine, ...] = ()
    command: Command | None = None
    drill_command: Command | None = None
