"""How far checkpoints stand from one of them, and which of a million are the nearest.

The nearest of a sample give a bound that at least as many keep to. Whole hundredths, a byte each, then show who may: a
million sums of them take a tenth of the time that sums of the standings themselves would.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from registry.evals.capability import Ranking
from registry.evals.percentiles import Booleans, Floats, Integers

UNSHARED: Final = 1 / 3  # the distance in what the other was not judged in
SAMPLE: Final = 16_384  # rows that a bound is taken from
BLOCK: Final = 65_536  # rows at a time: their bytes stay in the processor's cache
_ROUNDING: Final = 1e-9  # more than distances are rounded by where they are compared


@dataclass(frozen=True, eq=False)
class Distances:
    """From the checkpoint at `row`, by the rankings that it was judged in."""

    rankings: Sequence[Ranking]
    row: int

    @cached_property
    def shared(self) -> npt.NDArray[np.int8]:
        """(n,): in how many of them each was judged."""
        shared = np.zeros(len(self.rankings[0].standing), dtype=np.int8)
        for ranking in self.rankings:
            shared += ranking.is_ranked.view(np.int8)
        return shared

    def mean(self, rows: Integers) -> Floats:
        """The mean distance of these rows."""
        total = np.zeros(len(rows))
        for ranking in self.rankings:
            apart = np.abs(ranking.standing[rows] - ranking.standing[self.row])
            total += np.where(np.isfinite(apart), apart, UNSHARED)
        return total / len(self.rankings)

    def candidates(self, there: Booleans, most: int) -> Integers:
        """Rows of those that `there` marks, with the `most` nearest among them."""
        step = -(-len(there) // SAMPLE)
        sample = np.flatnonzero(there[::step]) * step
        if step == 1 or len(sample) < most:
            return np.flatnonzero(there)
        bound = (float(np.partition(self.mean(sample), most - 1)[most - 1]) + _ROUNDING) * len(self.rankings)
        # Rounded down, two standings can seem farther apart than they are by less than one hundredth.
        limit = np.uint16(int(100 * bound) + len(self.rankings))
        starts = range(0, len(there), BLOCK)
        near = [start + np.flatnonzero(self._hundredths(slice(start, start + BLOCK)) <= limit) for start in starts]
        rows = np.concatenate(near)
        return rows[there[rows]]

    def _hundredths(self, block: slice) -> npt.NDArray[np.uint16]:
        """The sums of a block's distances in whole hundredths, what is unshared first."""
        total = int(100 * UNSHARED) * (len(self.rankings) - self.shared[block]).astype(np.uint16)
        for ranking in self.rankings:
            theirs = ranking.hundredths[block]
            # Beside an array of equals, since numpy takes ten times as long to compare bytes with one number.
            own = np.full_like(theirs, ranking.hundredths[self.row])
            apart = np.maximum(theirs, own)
            apart -= np.minimum(theirs, own)
            apart *= ranking.is_ranked[block].view(np.uint8)
            total += apart
        return total
