"""Which scores stand alone: the ones on both sides of such a score contradict it, and agree with each other.

One bad evaluation among good ones would otherwise pass for the beginning of a fall, or widen every error until nothing
can be told from anything. A fall is not mistaken for one: behind its first point the next one agrees with it, and the
first and the newest score, which have one side only, never stand alone.
"""

import numpy as np
from numpy.typing import NDArray

from registry.evals.percentiles import Booleans

AROUND = 3  # scores on either side that a score is held against
CONTRADICTED = 4.0  # standard errors off the line through those around it: one score of 16,000 by chance
BY_EACH = 2.0  # standard errors that it differs from either neighbour, to the same side, and they less from each other
AGREE = 0.01  # the chance below which those around it do not agree with each other
LEAST_AROUND = 4
ONE_IN = 10  # where more than one score of ten would stand alone, the errors are too small, and none does

Numbers = NDArray[np.float64]


def stand_alone(log_steps: Numbers, values: Numbers, errors: Numbers) -> Booleans:
    """Whether each score of a series stands alone."""
    alone = np.zeros(len(values), dtype=bool)
    if len(values) <= LEAST_AROUND:
        return alone
    ahead = np.diff(values) / np.hypot(errors[1:], errors[:-1])
    low = (ahead[:-1] < -BY_EACH) & (ahead[1:] > BY_EACH)
    high = (ahead[:-1] > BY_EACH) & (ahead[1:] < -BY_EACH)
    alike = np.abs(values[2:] - values[:-2]) < BY_EACH * np.hypot(errors[2:], errors[:-2])
    for place in (np.flatnonzero((low | high) & alike) + 1).tolist():
        alone[place] = _is_contradicted(log_steps, values, errors, place)
    return alone if alone.sum() <= max(1, len(values) // ONE_IN) else np.zeros_like(alone)


def _is_contradicted(log_steps: Numbers, values: Numbers, errors: Numbers, place: int) -> bool:
    """Whether a line through those around it fits them, does not fall, and misses it."""
    from scipy.special import chdtri  # see registry.recovery.onset

    near = np.arange(max(0, place - AROUND), min(len(values), place + AROUND + 1))
    near = near[near != place]
    if len(near) < LEAST_AROUND:
        return False
    weight = 1 / errors[near]
    design = np.column_stack((np.ones(len(near)), log_steps[near] - log_steps[place])) * weight[:, None]
    line, *_ = np.linalg.lstsq(design, values[near] * weight, rcond=None)
    misfit = float((((values[near] * weight) - design @ line) ** 2).sum())
    if misfit > chdtri(len(near) - 2, AGREE):
        return False
    covariance = np.linalg.inv(design.T @ design)
    if line[1] < -BY_EACH * covariance[1, 1] ** 0.5:
        return False  # they fall themselves
    spread = float(covariance[0, 0] + errors[place] ** 2) ** 0.5
    return bool(abs(values[place] - line[0]) > CONTRADICTED * spread)
