"""What the template of findings and standing watches may use."""

from dataclasses import dataclass
from datetime import datetime

from ui.contexts.shared import Answer, CheckpointRef, Command, Link


@dataclass(frozen=True)
class FindingLine:
    id: str
    sentence: str
    state: str
    subject: Link
    checkpoint: CheckpointRef | None
    opened_at: datetime
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    note: str | None
    rollback: str


@dataclass(frozen=True)
class WatchLine:
    id: str
    subject: Link
    words: str
    created_at: datetime
    created_by: str
    note: str | None
    warning: str | None


@dataclass(frozen=True)
class FindingsContext:
    answer: Answer
    rows: tuple[FindingLine, ...]
    states: tuple[Link, ...]
    watches: tuple[WatchLine, ...]
    may_change: bool
    older: str | None
    newer: str | None
    empty: tuple[Command, ...] = ()
