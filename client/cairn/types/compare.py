"""What changed from one checkpoint to another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.reading import ANY, ITEMS, MAPPING, NUMBER, TEXT, TEXTS, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef


@dataclass(frozen=True, kw_only=True)
class ScoreChange(Answer):
    """One benchmark in both checkpoints; `delta` is candidate - baseline on the benchmark's own scale, and `direction`
    (higher, lower, target) says which way is better. `verdict`, which has taken that into account, is one of
    regressed, suspected, unchanged, inconclusive, improved, not_comparable; `why` explains it on the same scale."""

    benchmark: str = field(default="", metadata=TEXT)
    metric: str = field(default="", metadata=TEXT)
    filter: str = field(default="", metadata=TEXT)
    capability: str | None = field(default=None, metadata=TEXT)
    direction: str | None = field(default=None, metadata=TEXT)
    baseline: float | None = field(default=None, metadata=NUMBER)
    candidate: float | None = field(default=None, metadata=NUMBER)
    delta: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    p_value: float | None = field(default=None, metadata=NUMBER)
    q_value: float | None = field(default=None, metadata=NUMBER)
    minimum_detectable: float | None = field(default=None, metadata=NUMBER)
    method: str | None = field(default=None, metadata=TEXT)
    verdict: str = field(default="", metadata=TEXT)
    why: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class CapabilityChange(Answer):
    capability: str = field(default="", metadata=TEXT)
    delta: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    q_value: float | None = field(default=None, metadata=NUMBER)
    verdict: str = field(default="", metadata=TEXT)
    why: str | None = field(default=None, metadata=TEXT)
    benchmarks: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class ConfigChange(Answer):
    """`class_` is the answer's `class`: data, optimiser, schedule, model, ..."""

    path: str = field(default="", metadata=TEXT)
    change: str = field(default="", metadata=TEXT)
    class_: str | None = field(default=None, metadata={**TEXT, "name": "class"})
    old: Any = field(default=None, metadata=ANY)
    new: Any = field(default=None, metadata=ANY)


@dataclass(frozen=True, kw_only=True)
class Suspect(Answer):
    """Changes that may have caused what fell: an association, no proof. `share` is of all suspicion, 0 to 1."""

    changes: tuple[str, ...] = field(default=(), metadata=TEXTS)
    strength: str = field(default="", metadata=TEXT)
    share: float | None = field(default=None, metadata=NUMBER)
    reasons: tuple[str, ...] = field(default=(), metadata=TEXTS)


@dataclass(frozen=True, kw_only=True)
class Comparison(Answer):
    """What changed from `baseline` to `candidate`, and what is suspected of having done it."""

    scores: tuple[ScoreChange, ...] = field(metadata=many(ScoreChange))
    baseline: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    candidate: CheckpointRef | None = field(default=None, metadata=one(CheckpointRef))
    capabilities: tuple[CapabilityChange, ...] = field(default=(), metadata=many(CapabilityChange))
    config_changes: tuple[ConfigChange, ...] = field(default=(), metadata=many(ConfigChange))
    data_changes: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    code_changes: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    environment_changes: tuple[ConfigChange, ...] = field(default=(), metadata=many(ConfigChange))
    suspects: tuple[Suspect, ...] = field(default=(), metadata=many(Suspect))
    lineage: tuple[Any, ...] = field(default=(), metadata=ITEMS)
    lineage_why: str = field(default="", metadata=TEXT)
    late_why: str = field(default="", metadata=TEXT)
