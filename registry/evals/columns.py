"""Scores as a table: a row for each checkpoint, a column for each (benchmark, metric, filter), NaN where missing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from registry.evals.catalogue import Benchmark, catalogue
from registry.evals.normalise import TOP, is_logarithmic
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.types import Direction

# A whole is the mean of its parts where at least this share of its items was evaluated.
WHOLE_FROM: Final = 0.9
# The values that a scale can hold. One outside was reported in another scale, and is never rescaled by guess.
_LIMITS: Final = {"fraction": (0.0, 1.0), "percent": (-100.0, 100.0), "ten": (0.0, 10.0), "log": (0.0, np.inf)}


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


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """`checkpoints` and `runs` are ids (n,); `values` is (n, columns), `via` marks values of a lossless copy.

    `reference` marks the checkpoints that form the population: live, committed, evaluated themselves.
    """

    checkpoints: Integers
    runs: Integers
    reference: Booleans
    columns: tuple[Column, ...]
    values: Floats
    via: Booleans

    def where(self, column: Column) -> int:
        return self.columns.index(column)


def off_scale(values: Floats, benchmark: Benchmark) -> Booleans:
    """Which values cannot be of the benchmark's scale; missing ones are not among them."""
    low, high = _LIMITS.get(benchmark.scale, (-np.inf, np.inf))
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


def with_wholes(table: ScoreTable) -> ScoreTable:
    """The table with a column for each benchmark of which only the parts were evaluated, such as 57 subjects of mmlu.

    The whole is the mean of its parts by number of items, as harnesses compute it; missing where a tenth is missing.
    """
    names = sorted({column.benchmark.part_of for column in table.columns if column.benchmark.part_of})
    wholes = [whole for name in names if (whole := _whole(table, name)) is not None]
    if not wholes:
        return table
    return replace(
        table,
        columns=(*table.columns, *(column for column, _, _ in wholes)),
        values=np.column_stack([table.values, *(values for _, values, _ in wholes)]),
        via=np.column_stack([table.via, *(via for _, _, via in wholes)]),
    )


def _whole(table: ScoreTable, name: str) -> tuple[Column, Floats, Booleans] | None:
    listed = {part.name: part.sample_count for part in catalogue().parts(name) if part.metrics}
    benchmark = catalogue().get(name)
    chosen = _one_per_part(table.columns, listed) if benchmark is not None else []
    if benchmark is None or not chosen or _is_recorded(table.columns, benchmark, chosen[0]):
        return None
    places = [table.where(column) for column in chosen]
    counts = np.array([listed[column.benchmark.name] or 1 for column in chosen], dtype=float)
    total = sum(count or 1 for count in listed.values())
    values = table.values[:, places]
    present = np.isfinite(values)
    share = (present * counts).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(present, values, 0.0) @ counts / share
    whole = np.where(share >= WHOLE_FROM * total, mean, np.nan)
    if not np.isfinite(whole).any():
        return None
    column = Column(name, chosen[0].metric, chosen[0].filter, benchmark, parts=len(chosen))
    return column, whole, np.asarray(table.via[:, places].any(axis=1))


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
