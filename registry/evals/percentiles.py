"""Where a value stands among others: mid-rank percentiles in which every run has the same weight.

A run of 150 checkpoints must not outvote a run with one. Thinning every run to the same number would do it, at the
price of throwing most values away and of a choice of which to keep; a weight of 1 over the run's number of
checkpoints does the same and keeps them all.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

MINIMUM_CHECKPOINTS: Final = 20
MINIMUM_RUNS: Final = 3


def dense(runs: Integers) -> Integers:
    """The runs numbered from 0, so that counting them needs no sorting."""
    _, numbers = np.unique(runs, return_inverse=True)
    return np.asarray(numbers, dtype=np.int64).reshape(runs.shape)


def midranks(values: Floats, runs: Integers, reference: Booleans) -> Floats:
    """The share of the reference below each value, and half of the share equal to it; (n,) -> (n,), 0 to 1.

    `runs` are numbers from 0 (see `dense`). `reference` marks the values that form the population; others are ranked
    against it. Missing values (NaN) have no percentile and count for nothing. All NaN where the population is empty.

    A million values take 0.15 s: one sort, and no search for those that are of the population themselves.
    """
    finite = np.isfinite(values)
    counted = np.flatnonzero(reference & finite)
    shares = np.full(values.shape, np.nan)
    if not len(counted):
        return shares
    own = values[counted]
    order = np.argsort(own)
    ranked = own[order]
    weights = _weights(runs[counted])[order]
    # Summed within each group of equals, so that the order among equals can change nothing.
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    below = np.concatenate([[0.0], np.cumsum(np.add.reduceat(weights, starts))])
    middle = (below[:-1] + below[1:]) / (2 * below[-1])
    shares[counted[order]] = np.repeat(middle, np.diff(np.append(starts, len(ranked))))
    others = np.flatnonzero(finite & ~reference)
    if len(others):
        groups = ranked[starts]
        low, high = (np.searchsorted(groups, values[others], side) for side in ("left", "right"))
        shares[others] = (below[low] + below[high]) / (2 * below[-1])
    return shares


@dataclass(frozen=True, eq=False)
class Distribution:
    """The `values` that occur, ascending, and the weight `below` each of them; its last entry is the whole weight."""

    values: Floats
    below: Floats


def distribution_of(values: Floats, runs: Integers, reference: Booleans) -> Distribution:
    """How the reference spreads over its values, every run with the same weight."""
    counted = np.flatnonzero(reference & np.isfinite(values))
    if not len(counted):
        return Distribution(np.empty(0), np.zeros(1))
    order = counted[np.argsort(values[counted])]
    ranked = values[order]
    weights = np.zeros(len(values))
    weights[counted] = _weights(runs[counted])
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    below = np.concatenate([[0.0], np.cumsum(np.add.reduceat(weights[order], starts))])
    return Distribution(ranked[starts], below)


def shares_in(distribution: Distribution, values: Floats) -> Floats:
    """The mid-rank of each value in a distribution; NaN where that is empty, and for a value that is not finite."""
    total = distribution.below[-1]
    if not total:
        return np.full(values.shape, np.nan)
    low, high = (np.searchsorted(distribution.values, values, side) for side in ("left", "right"))
    shares = (distribution.below[low] + distribution.below[high]) / (2 * total)
    return np.where(np.isfinite(values), shares, np.nan)


def is_population(values: Floats, runs: Integers, reference: Booleans) -> bool:
    """Whether the reference is large enough for a percentile: at least 20 checkpoints from at least 3 runs."""
    counted = reference & np.isfinite(values)
    return int(counted.sum()) >= MINIMUM_CHECKPOINTS and count_runs(runs, counted) >= MINIMUM_RUNS


def count_runs(runs: Integers, members: Booleans) -> int:
    """How many runs the members are of."""
    return int(np.count_nonzero(np.bincount(runs[members]))) if members.any() else 0


def _weights(runs: Integers) -> Floats:
    """1 over the number of values of the same run."""
    return np.asarray(1.0 / np.bincount(runs)[runs], dtype=np.float64)
