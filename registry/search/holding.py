"""One condition held against a table of scores: who meets it, of whom that is known, and how nearly."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from registry.evals.capability import Ranking
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.evals.population.table import Ranked
from registry.search.conditions import STRONG, BenchmarkCondition, CapabilityCondition
from registry.search.native import COMPARE

_UNMET_AT_MOST: Final = 0.999  # an unmet condition never scores as a met one does


class Held(Protocol):
    """`met` and `known` are (n,); what is not known is not met."""

    @property
    def met(self) -> Booleans: ...

    @property
    def known(self) -> Booleans: ...

    def scores(self, rows: Integers) -> Floats:
        """How well the condition is met at these rows, 0 to 1; NaN where that is not known."""
        ...


@dataclass(frozen=True, eq=False)
class HeldCapability:
    """The standing itself is the score, or for `weak` what is left to 1."""

    condition: CapabilityCondition
    ranking: Ranking

    @cached_property
    def met(self) -> Booleans:
        standing, bound = self.ranking.standing, self.condition.threshold
        with np.errstate(invalid="ignore"):
            return np.asarray(standing >= bound if self.condition.relation == STRONG else standing <= bound)

    @cached_property
    def known(self) -> Booleans:
        return np.isfinite(self.ranking.standing)

    def scores(self, rows: Integers) -> Floats:
        standing = self.ranking.standing[rows]
        return standing if self.condition.relation == STRONG else 1 - standing


@dataclass(frozen=True, eq=False)
class HeldBenchmark:
    """A comparison that is met scores 1; one that is not, by the share of checkpoints that lie between."""

    condition: BenchmarkCondition
    table: Ranked
    place: int

    @cached_property
    def met(self) -> Booleans:
        with np.errstate(invalid="ignore"):
            there = COMPARE[self.condition.relation](self.table.values(self.place), self.condition.threshold)
        return np.asarray(there & self.known)

    @cached_property
    def known(self) -> Booleans:
        return np.isfinite(self.table.values(self.place))

    def scores(self, rows: Integers) -> Floats:
        met, known = self.met[rows], self.known[rows]
        if met.all():
            return np.ones(len(rows))
        if self.condition.relation == "!=":
            near = np.zeros(len(rows))
        else:
            bound = self.table.share_below(self.place, self.condition.threshold)
            near = np.minimum(1 - np.abs(self.table.ranks(self.place)[rows] - bound), _UNMET_AT_MOST)
        return np.where(known, np.where(met, 1.0, np.nan_to_num(near)), np.nan)


@dataclass(frozen=True, eq=False)
class HeldByNobody:
    """A benchmark of which there is no score: nothing is known of anybody."""

    size: int

    @property
    def met(self) -> Booleans:
        return np.zeros(self.size, dtype=bool)

    @property
    def known(self) -> Booleans:
        return np.zeros(self.size, dtype=bool)

    def scores(self, rows: Integers) -> Floats:
        return np.full(len(rows), np.nan)
