"""Which checkpoint is strong where, and on what evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.reading import ANY, FLAG, MAPPING, NUMBER, TEXT, TEXTS, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.checkpoints import CheckpointRef

MIDDLE = 0.5  # the percentile that 'not weak' and 'above average' ask for


@dataclass(frozen=True, kw_only=True)
class Condition(Answer):
    """One condition as it was understood: a capability, a benchmark or a field (`field_`)."""

    capability: str | None = field(default=None, metadata=TEXT)
    benchmark: str | None = field(default=None, metadata=TEXT)
    field_: str | None = field(default=None, metadata={**TEXT, "name": "field"})
    relation: str = field(default="", metadata=TEXT)
    threshold: Any = field(default=None, metadata=ANY)
    metric: str | None = field(default=None, metadata=TEXT)
    filter: str | None = field(default=None, metadata=TEXT)

    def __str__(self) -> str:
        figure = [part or "none" for part in (self.metric, self.filter) if part is not None]
        subject = ".".join([self.capability or self.benchmark or self.field_ or "?", *figure])
        if self.relation == "like":
            return f"{subject} near {self.threshold}"
        if self.relation not in ("strong", "weak"):
            return f"{subject} {self.relation} {self.threshold}"
        if not isinstance(self.threshold, int | float):
            return f"{self.relation} {subject}"
        bound = f"the {ordinal(self.threshold)} percentile or {self.side}"
        return f"{subject} at {bound}" if self.threshold == MIDDLE else f"{self.relation} {subject} ({bound})"

    @property
    def side(self) -> str:
        """On which side of the threshold `strong` and `weak` lie."""
        return "above" if self.relation == "strong" else "below"


def ordinal(fraction: float) -> str:
    """A percentile in words: 0.93 is the 93rd."""
    place = round(fraction * 100)
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


@dataclass(frozen=True, kw_only=True)
class Interpretation(Answer):
    """How a question was understood; `unparsed` are the words that were not.

    `resolved` says which metric a name meant, `left_out` which projects have the benchmark as other `scores` only.
    `at_most`: how many results the question asks for, as 'top 3' does.
    """

    conditions: tuple[Condition, ...] = field(default=(), metadata=many(Condition))
    unparsed: tuple[str, ...] = field(default=(), metadata=TEXTS)
    resolved: Any = field(default=None, metadata=ANY)
    order: str = field(default="match", metadata=TEXT)
    left_out: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    at_most: int | None = field(default=None, metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class BenchmarkEvidence(Answer):
    """A score that an answer rests on. `via`: that of a lossless copy; `parts`: the mean of so many subtasks."""

    benchmark: str = field(default="", metadata=TEXT)
    metric: str = field(default="", metadata=TEXT)
    filter: str = field(default="", metadata=TEXT)
    value: float | None = field(default=None, metadata=NUMBER)
    stderr: float | None = field(default=None, metadata=NUMBER)
    percentile: float | None = field(default=None, metadata=NUMBER)
    parts: int = field(default=0, metadata=WHOLE)
    via: bool = field(default=False, metadata=FLAG)


@dataclass(frozen=True, kw_only=True)
class Evidence(Answer):
    """What is known of one condition: `percentile` and `coverage` are fractions 0 to 1.

    Neither a percentile nor benchmarks: not evaluated, which is not weak.
    """

    condition: Condition = field(default_factory=Condition, metadata=one(Condition))
    capability: str | None = field(default=None, metadata=TEXT)
    percentile: float | None = field(default=None, metadata=NUMBER)
    composite: float | None = field(default=None, metadata=NUMBER)
    coverage: float | None = field(default=None, metadata=NUMBER)
    basis: str | None = field(default=None, metadata=TEXT)
    met: bool | None = field(default=None, metadata=FLAG)
    benchmarks: tuple[BenchmarkEvidence, ...] = field(default=(), metadata=many(BenchmarkEvidence))


@dataclass(frozen=True, kw_only=True)
class SearchResult(Answer):
    """`score` is the least over the conditions, 1 at best; `same_run` are ids of other results of its run."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    score: float | None = field(default=None, metadata=NUMBER)
    on_front: bool | None = field(default=None, metadata=FLAG)
    evidence: tuple[Evidence, ...] = field(default=(), metadata=many(Evidence))
    same_run: tuple[str, ...] = field(default=(), metadata=TEXTS)
    loss: float | None = field(default=None, metadata=NUMBER)


@dataclass(frozen=True, kw_only=True)
class SearchAnswer(Answer):
    """`strict` is False where nothing met every condition and the nearest are shown instead.

    `incomplete` are checkpoints that were never evaluated on a part of the question.
    """

    results: tuple[SearchResult, ...] = field(metadata=many(SearchResult))
    interpretation: Interpretation = field(default_factory=Interpretation, metadata=one(Interpretation))
    population: Mapping[str, Any] = field(default_factory=dict, metadata=MAPPING)
    strict: bool = field(default=True, metadata=FLAG)
    incomplete: tuple[SearchResult, ...] = field(default=(), metadata=many(SearchResult))


@dataclass(frozen=True, kw_only=True)
class Standing(Answer):
    """One capability of a checkpoint: where it stands among the checkpoints of its project."""

    capability: str = field(default="", metadata=TEXT)
    percentile: float | None = field(default=None, metadata=NUMBER)
    percentile_for_size: float | None = field(default=None, metadata=NUMBER)
    composite: float | None = field(default=None, metadata=NUMBER)
    coverage: float | None = field(default=None, metadata=NUMBER)
    population_size: int | None = field(default=None, metadata=WHOLE)
    benchmarks: tuple[BenchmarkEvidence, ...] = field(default=(), metadata=many(BenchmarkEvidence))
    warning: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Profile(Answer):
    """What a checkpoint is good at. `not_evaluated` are capabilities without a score, which is not weak."""

    checkpoint: CheckpointRef = field(metadata=one(CheckpointRef))
    capabilities: tuple[Standing, ...] = field(default=(), metadata=many(Standing))
    not_evaluated: tuple[str, ...] = field(default=(), metadata=TEXTS)
    unknown: tuple[str, ...] = field(default=(), metadata=TEXTS)
