"""Who may be shown: everybody who meets all conditions, or of whom all are known.

A question wants twenty of perhaps a million, so nobody is scored who cannot be among them. The scores of a sample give
a bound that at least as many reach; comparing each condition's column with it leaves few, and only those are scored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from registry.evals.percentiles import Booleans, Floats, Integers
from registry.search.contrast import greatest, on_front
from registry.search.holding import Held, HeldCapability

SAMPLE: Final = 16_384  # rows of the table that a bound is taken from


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows of a table that `there` marks. `strict`: they meet all of what is `held`; else all of it is known."""

    held: Sequence[Held]
    there: Booleans
    strict: bool

    @cached_property
    def size(self) -> int:
        return int(np.count_nonzero(self.there))

    @property
    def is_level(self) -> bool:
        """Whether all score 1 in everything: a comparison is met or not, however far."""
        return self.strict and not any(isinstance(held, HeldCapability) for held in self.held)

    def scores(self, rows: Integers) -> Floats:
        """(rows, conditions)."""
        return np.array([held.scores(rows) for held in self.held]).reshape(len(self.held), len(rows)).T

    def least(self, rows: Integers) -> Floats:
        """The score of each row: that of the condition which it meets least."""
        return np.asarray(self.scores(rows).min(axis=1, initial=1.0))

    def mean(self, rows: Integers) -> Floats:
        return np.asarray(self.scores(rows).mean(axis=1))

    def candidates(self, most: int) -> Integers:
        """Rows with the `most` best of the pool among them, whatever decides between rows of the same score."""
        if self.is_level or self.size <= max(SAMPLE, most):
            return np.flatnonzero(self.there)
        step = -(-len(self.there) // SAMPLE)
        sample = self.least(np.flatnonzero(self.there[::step]) * step)
        if len(sample) < most:
            return np.flatnonzero(self.there)
        return self._reaching([greatest(sample, most)] * len(self.held))

    def on_front(self, rows: Integers) -> list[bool]:
        """For each of these rows of the pool: whether none of the pool is at least as good in all, better in one."""
        scores = self.scores(rows)
        if (scores >= 1).all():
            return [True] * len(rows)
        rivals = self._reaching(scores.min(axis=0).tolist())
        return on_front(self.scores(rivals), np.searchsorted(rivals, rows))

    def _reaching(self, bounds: Sequence[float]) -> Integers:
        there = self.there.copy()
        for held, bound in zip(self.held, bounds, strict=True):
            there &= held.may_reach(bound)
        return np.flatnonzero(there)


def pool_of(held: Sequence[Held], allowed: Booleans, *, strict: bool) -> Pool:
    there = allowed.copy()
    for each in held:
        there &= each.met if strict else each.known
    return Pool(held, there, strict)
