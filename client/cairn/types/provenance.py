"""Where a checkpoint comes from; which one to evaluate next; answers that were kept."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import FLAG, ITEMS, MAPPING, MOMENT, NUMBER, NUMBERS, TEXT, TEXTS, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef


@dataclass(frozen=True, kw_only=True)
class Gap(Answer):
    """Two neighbours, and the probability that a score fell between them."""

    after: CheckpointRef = field(metadata=one(CheckpointRef))
    before: CheckpointRef = field(metadata=one(CheckpointRef))
    probability: float = field(metadata=NUMBER)


@dataclass(frozen=True, kw_only=True)
class NextEvaluation(Answer):
    """What to evaluate next, on how many items; `uri` is where a copy is."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    items: int = field(metadata=WHOLE)
    probability_bad: float | None = field(default=None, metadata=NUMBER)
    uri: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Bisect(Answer):
    """How a search stands. `next` is None where it is over, or nothing that can be evaluated would tell more.

    `benchmark_items`: how many items the whole benchmark has, where that is known.
    """

    id: str = field(metadata=TEXT)
    done: bool = field(metadata=FLAG)
    next: NextEvaluation | None = field(default=None, metadata=one(NextEvaluation))
    gap: Gap | None = field(default=None, metadata=one(Gap))
    posterior: tuple[Gap, ...] = field(default=(), metadata=many(Gap))
    good: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    bad: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    benchmark: str | None = field(default=None, metadata=TEXT)
    metric: str | None = field(default=None, metadata=TEXT)
    filter: str | None = field(default=None, metadata=TEXT)
    capability: str | None = field(default=None, metadata=TEXT)
    benchmarks: tuple[str, ...] = field(default=(), metadata=TEXTS)
    benchmark_items: int | None = field(default=None, metadata=WHOLE)
    evaluations: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    skipped: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    why: str = field(default="", metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Provenance(Answer):
    """The whole chain behind a checkpoint, the newest stage first; `unknown` says what is not recorded.

    `notes`: whose `config` and `environment` they are, where the checkpoint has none of its own.
    """

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    tokens_seen: int | None = field(default=None, metadata=WHOLE)
    tokens_by_source: Mapping[str, float] = field(default_factory=dict, metadata=NUMBERS)
    stages: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    parents: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    dirty: tuple[CheckpointRef, ...] = field(default=(), metadata=many(CheckpointRef))
    config: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    environment: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    notes: tuple[str, ...] = field(default=(), metadata=TEXTS)
    unknown: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class Decision(Answer):
    """An answer that was kept with its question; `url` is its page."""

    id: str = field(metadata=TEXT)
    kind: str = field(default="", metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    request: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    answer: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    note: str | None = field(default=None, metadata=TEXT)
    created_by: str = field(default="", metadata=TEXT)
    created_at: datetime | None = field(default=None, metadata=MOMENT)
    url: str | None = field(default=None, metadata=TEXT)
