"""One condition held against a table of scores: who meets it, of whom that is known, and how nearly."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

import numpy as np

from registry.evals.capability import Ranking
from registry.evals.columns import oriented
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.evals.population.table import Ranked
from registry.search.conditions import STRONG, BenchmarkCondition, CapabilityCondition
from registry.search.native import COMPARE

_UNMET_AT_MOST: Final = 0.999  # an unmet condition never scores as a met one does
_ROUNDING: Final = 1e-9  # more than scores are rounded by where they are compared


class Held(Protocol):
    """`met` and `known` are (n,); what is not known is not met."""

    @property
    def met(self) -> Booleans: ...

    @property
    def known(self) -> Booleans: ...

    def scores(self, rows: Integers) -> Floats:
        """How well the condition is met at these rows, 0 to 1; NaN where that is not known."""
        ...

    def may_reach(self, bound: float) -> Booleans:
        """(n,) a quick look at everybody: nobody is left out whose score is the bound, or rounds to it."""
        ...


@dataclass(frozen=True, eq=False)
class HeldCapability:
    """The standing itself is the score, or for `weak` what is left to 1."""

    condition: CapabilityCondition
    ranking: Ranking

    @cached_property
    def met(self) -> Booleans:
        return self._beyond(self.condition.threshold)

    @property
    def known(self) -> Booleans:
        return self.ranking.is_ranked

    def scores(self, rows: Integers) -> Floats:
        standing = self.ranking.standing[rows]
        return standing if self.condition.relation == STRONG else 1 - standing

    def may_reach(self, bound: float) -> Booleans:
        return self._beyond(bound - _ROUNDING if self.condition.relation == STRONG else 1 - bound + _ROUNDING)

    def _beyond(self, standing: float) -> Booleans:
        compare = np.greater_equal if self.condition.relation == STRONG else np.less_equal
        with np.errstate(invalid="ignore"):
            return np.asarray(compare(self.ranking.standing, standing))


@dataclass(frozen=True, eq=False)
class HeldBenchmark:
    """A comparison that is met scores 1; one that is not, by the share of checkpoints that lie between.

    A value off the benchmark's scale, beside others that are on it (a 52 beside 0.5), says nothing: it is not known.
    """

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
        return np.isfinite(oriented(self.table.values(self.place), self.table.columns[self.place]))

    @property
    def odd(self) -> int:
        """How many finite values are off the scale."""
        return int(np.count_nonzero(np.isfinite(self.table.values(self.place)) & ~self.known))

    @cached_property
    def _bound(self) -> float:
        """The percentile at which the comparison is met."""
        return self.table.share_below(self.place, self.condition.threshold)

    def scores(self, rows: Integers) -> Floats:
        met, known = self.met[rows], self.known[rows]
        if met.all():
            return np.ones(len(rows))
        if self.condition.relation == "!=":
            near = np.zeros(len(rows))
        else:
            near = np.minimum(1 - np.abs(self.table.ranks(self.place)[rows] - self._bound), _UNMET_AT_MOST)
        return np.where(known, np.where(met, 1.0, np.nan_to_num(near)), np.nan)

    def may_reach(self, bound: float) -> Booleans:
        if bound <= _ROUNDING:
            return self.known
        if bound > _UNMET_AT_MOST + _ROUNDING or self.condition.relation == "!=":
            return self.met
        ranks, far = self.table.ranks(self.place), 1 - bound + _ROUNDING
        with np.errstate(invalid="ignore"):
            return np.asarray(self.met | ((ranks >= self._bound - far) & (ranks <= self._bound + far)))


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

    def may_reach(self, bound: float) -> Booleans:
        return self.known
