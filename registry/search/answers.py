"""What a search answers, as plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from registry.checkpoints.rows import CheckpointIdentity
from registry.filters.left_out import LeftOut
from registry.search.conditions import Condition


@dataclass(frozen=True, slots=True)
class BenchmarkEvidence:
    """A score that the answer rests on. `parts`: it is the mean of so many subtasks; `via`: of a lossless copy."""

    benchmark: str
    metric: str
    filter: str
    value: float
    percentile: float | None
    parts: int = 0
    via: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one condition. All None and no benchmarks: not evaluated, which is not weak.

    `percentile` is a fraction from 0 to 1 among those evaluated; `basis` says whether it was held against the condition
    or, in a population too small for percentiles (`absolute`), the chance-normalised `composite` was.
    """

    condition: Condition
    capability: str | None
    percentile: float | None
    composite: float | None
    coverage: float
    basis: str
    met: bool
    benchmarks: tuple[BenchmarkEvidence, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`score`: the least over the conditions, 1 at best. `on_front`: no other is better in one and as good in all.

    `same_run`: the ids of other results that are of the same run. `loss` is the one recorded with the checkpoint.
    """

    checkpoint: CheckpointIdentity
    score: float
    on_front: bool
    evidence: tuple[Evidence, ...]
    same_run: tuple[int, ...] = ()
    loss: float | None = None


@dataclass(frozen=True, slots=True)
class CapabilityPopulation:
    capability: str
    size: int
    runs: int
    basis: str


@dataclass(frozen=True, slots=True)
class Population:
    """Whom the results were ranked among. `of_size`: those of the model size that the query names, not all.

    `reference`: published figures that they were ranked among instead of the project's own checkpoints.
    """

    size: int
    capabilities: tuple[CapabilityPopulation, ...] = ()
    of_size: bool = False
    warnings: tuple[str, ...] = ()
    reference: str | None = None


@dataclass(frozen=True, slots=True)
class Interpretation:
    """How the query was understood. `resolved`: for each benchmark, the metric and filter that were read; `left_out`:
    the projects that have the benchmark as another score only.

    `order`: what comes first among those that meet everything: the best `match`, the `newest`, the `oldest`, the
    `smallest` model or the `lowest_loss`. `at_most`: how many results the question asks for ('top 3'), None where it
    does not say.
    """

    conditions: tuple[Condition, ...]
    unparsed: tuple[str, ...]
    resolved: Mapping[str, str | None]
    order: str = "match"
    left_out: Mapping[str, tuple[LeftOut, ...]] = field(default_factory=dict)
    at_most: int | None = None


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """`strict`: the results meet every condition; otherwise they are the nearest.

    `incomplete`: meet what could be checked, and were never evaluated on the rest. They are no results.
    """

    interpretation: Interpretation
    population: Population
    strict: bool
    results: tuple[SearchResult, ...]
    incomplete: tuple[SearchResult, ...] = ()
