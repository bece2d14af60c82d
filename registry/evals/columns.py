"""Scores as columns: a row for each checkpoint, a column for each (benchmark, metric, filter), NaN where missing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from registry.evals.catalogue import Benchmark, catalogue
from registry.evals.normalise import TOP, is_logarithmic
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.evals.scales import LIMITS
from registry.types import Direction

# A whole is the mean of its parts where at least this share of its items was evaluated.
WHOLE_FROM: Final = 0.9


@dataclass(frozen=True, slots=True)
class Column:
    """`name` as results wrote it; `benchmark` says how figures of this metric read; `parts`: a mean of so many."""

    name: str
    metric: str
    filter: str
    benchmark: Benchmark
    parts: int = 0

    @property
    def is_listed(self) -> bool:
        """Whether the benchmark table knows this metric for this benchmark."""
        return any(self.metric == metric for metric, _ in self.benchmark.metrics)

    @property
    def metric_place(self) -> int:
        places = [place for place, pair in enumerate(self.benchmark.metrics) if pair == (self.metric, self.filter)]
        return places[0] if places else len(self.benchmark.metrics)


class ScoreTable(Protocol):
    """`checkpoints` are ids, `runs` numbers from 0 for their runs; both (n,), and so is each column.

    `reference` marks the checkpoints that form the population: live and committed. The table is never changed:
    whoever keeps one makes the next from it.
    """

    checkpoints: Integers
    runs: Integers
    reference: Booleans
    columns: tuple[Column, ...]

    def values(self, place: int) -> Floats:
        """The scores of a column, NaN where missing or not finite."""
        ...

    def via(self, place: int) -> Booleans | None:
        """Which values of a column are those of a lossless copy; None where none is."""
        ...

    def counted(self, place: int) -> Booleans:
        """Which checkpoints may form the population of a column: evaluated themselves."""
        ...

    def ranks(self, place: int) -> Floats:
        """The percentile of each value among those of the population."""
        ...

    def is_wide(self, place: int) -> bool:
        """Whether the population of a column is large enough for a percentile."""
        ...

    def members_of(self, places: list[int]) -> tuple[Booleans, int, int]:
        """(who of the rows is of the population of any of these columns, how many checkpoints, of how many runs)."""
        ...


def off_scale(values: Floats, benchmark: Benchmark) -> Booleans:
    """Which values cannot be of the benchmark's scale; missing ones are not among them."""
    low, high = LIMITS.get(benchmark.scale, (-np.inf, np.inf))
    with np.errstate(invalid="ignore"):
        outside = (values < low - 1e-9) | (values > high + 1e-9)
    if benchmark.scale == "log":
        outside |= values == 0
    return np.asarray(outside & np.isfinite(values))


def oriented(values: Floats, column: Column) -> Floats:
    """The values with larger as better, for ranking. A column that mixes scales keeps those of its own scale only."""
    benchmark = column.benchmark
    outside = off_scale(values, benchmark)
    if outside.any() and (benchmark.direction is Direction.TARGET or not outside[np.isfinite(values)].all()):
        values = np.where(outside, np.nan, values)
    if benchmark.direction is Direction.TARGET:
        target = 0.5 * TOP.get(benchmark.scale, 1.0) if benchmark.chance is None else benchmark.chance
        return -np.abs(values - target)
    return -values if benchmark.direction is Direction.LOWER else values


def normalised(values: Floats, column: Column) -> Floats:
    """The values with 1 as perfect and 0 as guessing (or, where less is better, as the top of the scale), not clipped.

    NaN where the scale has no top, and where a value is off its scale.
    """
    benchmark = column.benchmark
    top = TOP.get(benchmark.scale)
    if top is None or is_logarithmic(benchmark, column.metric):
        return np.full(values.shape, np.nan)
    values = np.where(off_scale(values, benchmark), np.nan, values)
    chance = benchmark.chance or 0.0
    if benchmark.direction is Direction.TARGET:
        target = 0.5 * top if benchmark.chance is None else chance
        return np.asarray(1 - np.abs(values - target) / max(target, top - target))
    if benchmark.direction is Direction.LOWER:
        return np.asarray(1 - values / top)
    return np.asarray((values - chance) / (top - chance))


@dataclass(frozen=True, slots=True)
class Whole:
    """A benchmark of which only the parts were evaluated: `column` is the mean of those at `places`, by `weights`.

    `total`: the weight of all parts that the benchmark table lists.
    """

    column: Column
    places: tuple[int, ...]
    weights: tuple[int, ...]
    total: int


def wholes_of(columns: Sequence[Column], entry_of: Callable[[str], Benchmark | None]) -> list[Whole]:
    """A column for each benchmark of which only the parts were evaluated, such as the 57 subjects of mmlu."""
    names = sorted({column.benchmark.part_of for column in columns if column.benchmark.part_of})
    return [whole for name in names if (whole := _whole(columns, name, entry_of(name))) is not None]


def _whole(columns: Sequence[Column], name: str, benchmark: Benchmark | None) -> Whole | None:
    listed = {part.name: part.sample_count for part in catalogue().parts(name) if part.metrics}
    chosen = _one_per_part(columns, listed) if benchmark is not None else []
    if benchmark is None or not chosen or _is_recorded(columns, benchmark, chosen[0]):
        return None
    places = tuple(columns.index(column) for column in chosen)
    weights = tuple(listed[column.benchmark.name] or 1 for column in chosen)
    column = Column(name, chosen[0].metric, chosen[0].filter, benchmark, parts=len(chosen))
    return Whole(column, places, weights, sum(count or 1 for count in listed.values()))


def mean_of_parts(whole: Whole, parts: Sequence[Floats]) -> Floats:
    """The mean by number of items, as harnesses compute it; missing where more than a tenth of the items is missing."""
    share = np.zeros(parts[0].shape)
    total = np.zeros(parts[0].shape)
    for values, weight in zip(parts, whole.weights, strict=True):
        present = np.isfinite(values)
        share[present] += weight
        total[present] += values[present] * weight
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(share >= WHOLE_FROM * whole.total, total / share, np.nan)


def _is_recorded(columns: Sequence[Column], whole: Benchmark, part: Column) -> bool:
    """Whether somebody evaluated the whole by the same metric: then it needs no mean of its parts."""
    return any(
        column.benchmark.name == whole.name and (column.metric, column.filter) == (part.metric, part.filter)
        for column in columns
    )


def _one_per_part(columns: Sequence[Column], listed: dict[str, int | None]) -> list[Column]:
    """The columns of the metric that most parts have; where two have as many, the table's first."""
    parts = [column for column in columns if column.benchmark.part_of and column.benchmark.name in listed]
    pairs: dict[tuple[str, str], dict[str, Column]] = {}
    for column in parts:
        pairs.setdefault((column.metric, column.filter), {}).setdefault(column.benchmark.name, column)
    if not pairs:
        return []
    best = max(pairs, key=lambda pair: (len(pairs[pair]), -next(iter(pairs[pair].values())).metric_place))
    return list(pairs[best].values())
