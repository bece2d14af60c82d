"""Benchmarks rolled up into a capability: a percentile among comparable checkpoints, with its coverage.

A capability's percentile is the mean over its benchmarks of the percentile within each, one benchmark a family
(gsm8k or gsm8k_cot), so that a missing benchmark leaves the others comparable; a mean of raw scores would not be.

Percentiles are taken among all checkpoints asked about, or those of the size that the question names. Ranking always
within a power-of-two size band was tried on the 89 published DCLM models: it puts a 1.4B model that guesses (1% of
gsm8k) second in math, as the least bad of its band, where the whole population names twelve 7B models.

Where a population is below 20 checkpoints from 3 runs, the chance-normalised mean stands in for the percentile and
the ranking says so. What was not evaluated has no percentile: it is never taken for weak.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from registry.evals.catalogue import catalogue
from registry.evals.columns import Column, ScoreTable, normalised
from registry.evals.percentiles import Booleans, Floats, Integers

# A capability is judged on at least this many benchmarks, or this share of those that anybody here was evaluated on.
ENOUGH_BENCHMARKS: Final = 2
ENOUGH_SHARE: Final = 0.5

MISSING: Final = 255  # among hundredths

Basis = Literal["percentile", "absolute"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where one checkpoint stands. `chosen`: the columns that its percentile rests on, one a family."""

    percentile: float
    composite: float
    coverage: float
    chosen: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Where each checkpoint of a table stands in one capability.

    `standing`: (n,) what conditions are held against: the percentile, NaN where not evaluated or on too few benchmarks;
    or on the `absolute` basis the chance-normalised composite clipped to 0..1. `families`: the places of the columns
    of each family, the preferred one first. `members`: (n,) the population. It knows no way back to the table, which
    keeps it: a million rows must go as soon as nobody asks for them.
    """

    capability: str
    basis: Basis
    standing: Floats
    families: tuple[tuple[int, ...], ...]
    usable: tuple[tuple[int, ...], ...]
    members: Booleans
    size: int
    runs: int

    @property
    def places(self) -> list[int]:
        return [place for members in self.families for place in members]

    @property
    def is_evaluated(self) -> bool:
        """Whether anybody was evaluated at all."""
        return bool(self.places)

    @cached_property
    def is_ranked(self) -> Booleans:
        """(n,): who was evaluated on enough."""
        return np.isfinite(self.standing)

    @cached_property
    def hundredths(self) -> npt.NDArray[np.uint8]:
        """(n,): the standing in whole hundredths, for a first look at everybody; MISSING where there is none."""
        return np.where(self.is_ranked, 100 * self.standing, MISSING).astype(np.uint8)

    def at(self, table: ScoreTable, row: int) -> Place:
        """The checkpoint at a row of the table that was ranked."""
        return self.at_rows(table, np.array([row]))[0]

    def at_rows(self, table: ScoreTable, rows: Integers) -> list[Place]:
        """The checkpoints at some rows of the table that was ranked.

        Percentile and composite are NaN where one was evaluated on too few benchmarks.
        """
        places = [place for members in self.usable for place in members]
        ranks = {place: table.ranks(place)[rows].tolist() for place in places}
        points = {place: normalised(table.values(place)[rows], table.columns[place]).tolist() for place in places}
        return [self._at(number, ranks, points) for number in range(len(rows))]

    def _at(self, number: int, ranks: Mapping[int, list[float]], points: Mapping[int, list[float]]) -> Place:
        found = (
            next((place for place in members if math.isfinite(ranks[place][number])), None) for members in self.usable
        )
        chosen = tuple(place for place in found if place is not None)
        coverage = len(chosen) / max(len(self.usable), 1)
        if not _enough(len(chosen), coverage):
            return Place(math.nan, math.nan, coverage, chosen)
        percentile = sum(ranks[place][number] for place in chosen) / len(chosen)
        known = [points[place][number] for place in chosen if math.isfinite(points[place][number])]
        return Place(percentile, sum(known) / len(known) if known else math.nan, coverage, chosen)


def rank_capability(table: ScoreTable, capability: str) -> Ranking:
    """The ranking of every checkpoint of the table among those of its reference."""
    families = _families(table, capability)
    places = [place for members in families for place in members]
    wide = {place for place in places if table.is_wide(place)}
    basis: Basis = "percentile" if wide else "absolute"
    usable = tuple(tuple(place for place in members if not wide or place in wide) for members in families)
    standing = _percentile(table, usable) if wide else _absolute(table, usable)
    members, size, runs = table.members_of(places)
    return Ranking(capability, basis, standing, families, usable, members, size, runs)


def _percentile(table: ScoreTable, usable: Sequence[Sequence[int]]) -> Floats:
    return _mean_over_families(table, usable, lambda place, _: table.ranks(place))


def _absolute(table: ScoreTable, usable: Sequence[Sequence[int]]) -> Floats:
    """The composite clipped to 0..1; the percentile of those of which no figure has a top to its scale."""
    composite = _mean_over_families(table, usable, lambda place, rows: _points(table, place, rows))
    return np.where(np.isfinite(composite), np.clip(composite, 0.0, 1.0), _percentile(table, usable))


def _points(table: ScoreTable, place: int, rows: slice) -> Floats:
    return normalised(table.values(place)[rows], table.columns[place])


def _mean_over_families(
    table: ScoreTable, usable: Sequence[Sequence[int]], values_of: Callable[[int, slice], Floats]
) -> Floats:
    """The mean of what each row has of every family; NaN where that is too little. A scale without a top is left out.

    The first column of a family in which a row has a rank stands for it.
    """
    size = len(table.checkpoints)
    total, present = np.zeros(size), np.zeros(size, dtype=np.int16)
    count = np.zeros(size, dtype=np.int16)
    for members in usable:
        free = np.ones(size, dtype=bool)
        for place in members:
            taken = free & np.isfinite(table.ranks(place))
            values = values_of(place, slice(None))
            known = taken & np.isfinite(values)
            np.add(total, values, out=total, where=known)
            present += known
            count += taken
            free &= ~taken
    enough = _enough(count, count / max(len(usable), 1))
    with np.errstate(invalid="ignore"):
        return np.where(enough, total / present, np.nan)


def _enough(count: Any, coverage: Any) -> Any:
    """Whether so many benchmarks, or that share of them, are enough: of one checkpoint, or of (n,)."""
    return (count >= ENOUGH_BENCHMARKS) | ((count > 0) & (coverage >= ENOUGH_SHARE))


def _families(table: ScoreTable, capability: str) -> tuple[tuple[int, ...], ...]:
    """The columns of each family, the preferred one first.

    Of its benchmarks the one that most have, in a metric that the table lists; of the metrics of one benchmark the one
    that a query without a metric is read by: the table's first, then the most frequent, then by name. Parts of a
    benchmark do not vote: the column of the whole does, whether it was recorded or is their mean. A column without a
    finite score says nothing of anybody, so it is no benchmark that somebody missed.
    """
    families: dict[str, list[int]] = {}
    counts: dict[int, int] = {}
    most: dict[str, tuple[bool, int]] = {}
    for place, column in enumerate(table.columns):
        if column.benchmark.capability == capability and column.benchmark.part_of is None:
            counts[place] = int(np.count_nonzero(np.isfinite(table.values(place))))
            if counts[place]:
                families.setdefault(column.benchmark.family, []).append(place)
                standing = (column.is_listed, counts[place])
                most[column.benchmark.name] = max(standing, most.get(column.benchmark.name, standing))

    def preference(place: int) -> tuple[bool, int, int, int, int, str, str, str]:
        column: Column = table.columns[place]
        listed, count = most[column.benchmark.name]
        benchmark = (not listed, -count, catalogue().position(column.benchmark))
        return *benchmark, column.metric_place, -counts[place], column.metric, column.filter, column.name

    return tuple(tuple(sorted(members, key=preference)) for _, members in sorted(families.items()))
