"""Where a value stands among others: mid-rank percentiles in which every run has the same weight.

A run of 150 checkpoints must not outvote a run with one. Thinning every run to the same number would do it, at the
price of throwing most values away and of a choice of which to keep; a weight of 1 over the run's number of
checkpoints does the same and keeps them all.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

MINIMUM_CHECKPOINTS: Final = 20
MINIMUM_RUNS: Final = 3


def midranks(values: Floats, runs: Integers, reference: Booleans) -> Floats:
    """The share of the reference below each value, and half of the share equal to it; (n,) -> (n,), 0 to 1.

    `reference` marks the values that form the population; others are ranked against it. Missing values (NaN) have
    no percentile and count for nothing. All NaN where the population is empty.
    """
    counted = reference & np.isfinite(values)
    if not counted.any():
        return np.full(values.shape, np.nan)
    _, run_of, sizes = np.unique(runs[counted], return_inverse=True, return_counts=True)
    order = np.argsort(values[counted], kind="stable")
    ranked = values[counted][order]
    below = np.concatenate([[0.0], np.cumsum((1.0 / sizes)[run_of][order])])
    low, high = np.searchsorted(ranked, values, "left"), np.searchsorted(ranked, values, "right")
    shares = (below[low] + below[high]) / (2 * below[-1])
    return np.where(np.isfinite(values), shares, np.nan)


def is_population(values: Floats, runs: Integers, reference: Booleans) -> bool:
    """Whether the reference is large enough for a percentile: at least 20 checkpoints from at least 3 runs."""
    counted = reference & np.isfinite(values)
    return int(counted.sum()) >= MINIMUM_CHECKPOINTS and len(np.unique(runs[counted])) >= MINIMUM_RUNS
