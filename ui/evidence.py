"""What the pages of evidence may use: where a checkpoint comes from, searches, and kept answers."""

from dataclasses import dataclass
from datetime import datetime

from ui.contexts import Answer, CheckpointRef, Command, Fact, Link


@dataclass(frozen=True)
class SourceRow:
    name: str
    tokens: str
    share: float


@dataclass(frozen=True)
class StageRow:
    ref: CheckpointRef
    began: str
    steps: str
    tokens: str
    data: str
    config: str
    code: str
    tree: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class ProvenanceContext:
    ref: CheckpointRef
    answer: Answer
    sources: tuple[SourceRow, ...]
    largest: float
    stages: tuple[StageRow, ...]
    unknown: tuple[str, ...]
    markdown_href: str
    command: Command


@dataclass(frozen=True)
class GapRow:
    after: CheckpointRef
    before: CheckpointRef
    probability: float
    credible: bool


@dataclass(frozen=True)
class EvaluationRow:
    ref: CheckpointRef
    value: str
    below: str
    items: str
    source: str
    probability_bad: float


@dataclass(frozen=True)
class BisectContext:
    """`gaps`: the likeliest ones, in the order of training."""

    answer: Answer
    good: CheckpointRef
    bad: CheckpointRef
    target: str
    next: CheckpointRef | None
    next_words: str
    command: Command | None
    gaps: tuple[GapRow, ...]
    more_gaps: int
    evaluations: tuple[EvaluationRow, ...]
    facts: tuple[Fact, ...]
    actions: tuple[Link, ...]


@dataclass(frozen=True)
class Table:
    """A part of a kept answer; a cell with an address is a link. `narrow`: columns that a small screen shows, too."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Link | str, ...], ...]
    narrow: int
    left_out: int = 0
    numbers: tuple[int, ...] = ()  # columns of numbers


@dataclass(frozen=True)
class RecordContext:
    answer: Answer
    kind: str
    project: str
    note: str | None
    kept_by: str
    kept_at: datetime
    question: tuple[Fact, ...]
    tables: tuple[Table, ...]
    json_href: str
    again_href: str


@dataclass(frozen=True)
class RecordRow:
    href: str
    title: str
    project: str
    note: str | None
    kept_by: str
    kept_at: datetime


@dataclass(frozen=True)
class RecordsContext:
    answer: Answer
    rows: tuple[RecordRow, ...]
    older: str | None
    command: Command | None
