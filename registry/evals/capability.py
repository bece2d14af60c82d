"""Benchmarks rolled up into a capability: a percentile among comparable checkpoints, with its coverage.

A capability's percentile is the mean over its benchmarks of the percentile within each, one benchmark a family
(gsm8k or gsm8k_cot), so that a missing benchmark leaves the others comparable; a mean of raw scores would not be.

Percentiles are taken among all checkpoints asked about, or those of the size that the question names. Ranking always
within a power-of-two size band was tried on the 89 published DCLM models: it puts a 1.4B model that guesses (1% of
gsm8k) second in math, as the least bad of its band, where the whole population names twelve 7B models.

Where a population is below 20 checkpoints from 3 runs, the chance-normalised mean stands in for the percentile and
the ranking says so. What was not evaluated has no percentile: it is never taken for weak.
"""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from registry.evals.catalogue import catalogue
from registry.evals.columns import Column, ScoreTable, normalised, oriented
from registry.evals.percentiles import Booleans, Floats, Integers, is_population, midranks

# A capability is judged on at least this many benchmarks, or this share of those that anybody here was evaluated on.
ENOUGH_BENCHMARKS: Final = 2
ENOUGH_SHARE: Final = 0.5

Basis = Literal["percentile", "absolute"]


@dataclass(frozen=True, eq=False)
class Ranking:
    """Where each checkpoint of a table stands in one capability; arrays are (n,) but where said otherwise.

    `evaluated`: has any score. `percentile`: NaN where not evaluated, or on too few benchmarks. `composite`: the
    chance-normalised mean of the same benchmarks. `standing`: what conditions are held against: the percentile, or on
    the `absolute` basis the composite clipped to 0..1. `chosen`: (n, families) the place of the column that stands for
    a family, -1 for none. `ranks`: (n, columns) percentiles within each column. `members`: the population.
    """

    capability: str
    basis: Basis
    percentile: Floats
    composite: Floats
    standing: Floats
    coverage: Floats
    evaluated: Booleans
    chosen: Integers
    ranks: Floats
    members: Booleans
    runs: int

    @property
    def size(self) -> int:
        return int(self.members.sum())


def rank_capability(table: ScoreTable, capability: str, reference: Booleans | None = None) -> Ranking:
    """The ranking of every checkpoint of the table; `reference` narrows the population, (n,)."""
    reference = table.reference if reference is None else table.reference & reference
    families = _families(table, capability)
    places = [place for members in families for place in members]
    ranks = np.full(table.values.shape, np.nan)
    wide: list[int] = []
    for place in places:
        values = oriented(table.values[:, place], table.columns[place])
        counted = reference & ~table.via[:, place]
        ranks[:, place] = midranks(values, table.runs, counted)
        if is_population(values, table.runs, counted):
            wide.append(place)
    basis: Basis = "percentile" if wide else "absolute"
    usable = [[place for place in members if not wide or place in wide] for members in families]
    chosen = _choose(ranks, usable)
    return _summary(table, capability, basis, chosen, ranks, reference, places)


def _summary(
    table: ScoreTable,
    capability: str,
    basis: Basis,
    chosen: Integers,
    ranks: Floats,
    reference: Booleans,
    places: list[int],
) -> Ranking:
    count = (chosen >= 0).sum(axis=1)
    coverage = count / max(chosen.shape[1], 1)
    enough = (count >= ENOUGH_BENCHMARKS) | ((count > 0) & (coverage >= ENOUGH_SHARE))
    points = np.full(ranks.shape, np.nan)
    for place in places:
        points[:, place] = normalised(table.values[:, place], table.columns[place])
    percentile = np.where(enough, _mean_of_chosen(ranks, chosen), np.nan)
    composite = np.where(enough, _mean_of_chosen(points, chosen), np.nan)
    absolute = np.where(np.isfinite(composite), np.clip(composite, 0.0, 1.0), percentile)
    evaluated = np.asarray(np.isfinite(table.values[:, places]).any(axis=1))
    own = np.isfinite(table.values[:, places]) & ~table.via[:, places]
    members = np.asarray(reference & own.any(axis=1))
    return Ranking(
        capability,
        basis,
        percentile,
        composite,
        percentile if basis == "percentile" else absolute,
        coverage,
        evaluated,
        chosen,
        ranks,
        members,
        len(np.unique(table.runs[members])),
    )


def _families(table: ScoreTable, capability: str) -> list[list[int]]:
    """The columns of each family, the preferred one first: listed metrics, then by how many have it, then as listed.

    Parts of a benchmark do not vote: the column of the whole does, whether it was recorded or is their mean.
    """
    families: dict[str, list[int]] = {}
    for place, column in enumerate(table.columns):
        if column.benchmark.capability == capability and column.benchmark.part_of is None:
            families.setdefault(column.benchmark.family, []).append(place)
    counts = np.isfinite(table.values).sum(axis=0)

    def preference(place: int) -> tuple[bool, int, int, int, str]:
        column: Column = table.columns[place]
        position = catalogue().position(column.benchmark)
        return not column.is_listed, -int(counts[place]), position, column.metric_place, column.name

    return [sorted(members, key=preference) for _, members in sorted(families.items())]


def _choose(ranks: Floats, families: list[list[int]]) -> Integers:
    chosen = np.full((ranks.shape[0], len(families)), -1, dtype=np.int64)
    for family, members in enumerate(families):
        for place in reversed(members):
            chosen[np.isfinite(ranks[:, place]), family] = place
    return chosen


def _mean_of_chosen(values: Floats, chosen: Integers) -> Floats:
    """The mean over the families of a row; what has no value (a scale without a top) is left out."""
    if not chosen.shape[1]:
        return np.full(values.shape[0], np.nan)
    picked = np.take_along_axis(values, np.maximum(chosen, 0), axis=1)
    picked = np.where(chosen >= 0, picked, np.nan)
    present = np.isfinite(picked)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(present, picked, 0.0).sum(axis=1) / present.sum(axis=1))
