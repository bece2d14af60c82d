"""What the template of one checkpoint may use."""

from dataclasses import dataclass
from datetime import datetime

from ui.contexts.restore import RestoreBlock
from ui.contexts.shared import Answer, CheckpointRef, Chip, Command, Fact, Link
from ui.filters import Number


@dataclass(frozen=True)
class PieceRow:
    name: str
    presence: str
    evidence: str
    consequence: str


@dataclass(frozen=True)
class ReplicaRow:
    id: str
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    files: int | None
    state: str
    digest: str | None
    recorded_at: datetime
    managed: str
    parts: str = ""


@dataclass(frozen=True)
class ScoreRow:
    benchmark: str
    metric: str
    filter: str
    value: Number
    stderr: Number
    n_shot: int | None = None
    n_samples: int | None = None
    version: str | None = None
    evaluated_at: datetime | None = None
    earlier: int = 0
    note: str = ""
    via: str | None = None  # the lossless copy that the score was measured on


@dataclass(frozen=True)
class CapabilityRow:
    name: str
    percentile: float | None
    coverage: str
    scores: tuple[ScoreRow, ...]
    folded: str = ""  # what is folded away, where it is


@dataclass(frozen=True)
class LineageRow:
    direction: str
    relation: str
    ref: CheckpointRef | None
    words: str = ""


@dataclass(frozen=True)
class SourceRow:
    name: str
    weight: float | None
    tokens: float | None


@dataclass(frozen=True)
class CheckpointContext:
    ref: CheckpointRef
    colour: int
    answer: Answer
    restore: RestoreBlock
    facts: tuple[Fact, ...]
    aliases: tuple[Chip, ...]
    tags: tuple[Fact, ...]
    notes: str | None
    pieces: tuple[PieceRow, ...]
    replicas: tuple[ReplicaRow, ...]
    capabilities: tuple[CapabilityRow, ...]
    rank_href: str | None
    metrics: tuple[Fact, ...]
    layout: tuple[Fact, ...]
    config: tuple[Fact, ...]
    config_digest: str | None
    data_version: str | None
    data_sources: tuple[SourceRow, ...]
    code: tuple[Fact, ...]
    environment: tuple[Fact, ...]
    lineage: tuple[LineageRow, ...]
    actions: tuple[Link, ...]
    csv_href: str
    previous: Link | None = None
    next: Link | None = None
    score_command: Command | None = None

    @property
    def largest_share(self) -> float:
        return max((row.weight or 0.0 for row in self.data_sources), default=0.0)
