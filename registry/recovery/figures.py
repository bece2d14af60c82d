"""Standard errors and the common scale of whole columns of scores.

The same rules as for one score (`evals.standard_error`, `evals.normalise`), which a test holds them to: ten thousand
scores are a few sums over columns.
"""

import math

import numpy as np

from registry.evals.catalogue import Benchmark
from registry.evals.normalise import TOP, is_logarithmic, orient, target_of
from registry.evals.percentiles import Booleans, Floats
from registry.evals.standard_error import ASSUMED_SAMPLES, PROPORTIONS, SANITY_FACTOR, proportion_error
from registry.types import Direction


def standard_errors(
    values: Floats, published: Floats, n_samples: int | None, benchmark: Benchmark, metric: str
) -> tuple[Floats, bool]:
    """(the standard error of each score, whether any is assumed); NaN where no test is possible.

    `published` is NaN where nobody said.
    """
    top = TOP.get(benchmark.scale) if benchmark.scale in ("fraction", "percent") else None
    share = values / top if top else np.full(len(values), np.nan)
    inside = (share >= 0) & (share <= 1) if top and metric in PROPORTIONS else np.zeros(len(values), dtype=bool)
    n = n_samples or benchmark.sample_count
    bounded = _bounded(share if top else None, published, n, top)
    if not inside.any() or top is None:
        return bounded, False
    formula = _formula(share, inside, n or ASSUMED_SAMPLES)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = published / top / formula
        believed = (published > 0) & np.isfinite(published)
        if n is not None:
            believed &= (ratio >= 1 / SANITY_FACTOR) & (ratio <= SANITY_FACTOR)
    errors = np.where(inside, np.where(believed, published, formula * top), bounded)
    return errors, bool(n is None and (inside & ~believed).any())


def _formula(share: Floats, inside: Booleans, n: int) -> Floats:
    """sqrt(p(1-p)/(n-1)); at 0 and at 1 from Wilson's interval, and NaN where it is no proportion."""
    errors = np.full(len(share), np.nan)
    ends = inside & ((share == 0) | (share == 1)) if n >= 2 else inside
    plain = inside & ~ends
    errors[plain] = np.sqrt(share[plain] * (1 - share[plain]) / (n - 1)) if n >= 2 else np.nan
    for place in np.flatnonzero(ends).tolist():
        errors[place] = proportion_error(float(share[place]), n)[0]
    return errors


def _bounded(share: Floats | None, published: Floats, n: int | None, top: float | None) -> Floats:
    """Metrics that are no proportion: only their published error, and on a 0-to-1 scale none above p(1-p)."""
    with np.errstate(invalid="ignore"):
        errors = np.where(np.isfinite(published) & (published > 0), published, np.nan)
        if share is not None and top and n and n > 1:
            most = np.sqrt(np.clip(share * (1 - share), 0, None) / (n - 1)) * top
            errors = np.where((share > 0) & (share < 1) & (published > SANITY_FACTOR * most), np.nan, errors)
    return errors


def orient_all(values: Floats, errors: Floats, benchmark: Benchmark, metric: str) -> tuple[Floats, Floats]:
    """Scores and errors on the common scale: larger is better, chance at 0, perfect at 1; not clipped."""
    if is_logarithmic(benchmark, metric):
        return np.asarray(-np.log(values)), errors / values
    top = TOP.get(benchmark.scale)
    if benchmark.direction is Direction.TARGET and top is not None:
        span = max(target_of(benchmark), top - target_of(benchmark))
        return 1 - np.abs(values - target_of(benchmark)) / span, errors / span
    # Any other scale is a straight line, which two of its points give.
    start, unit = (orient(each, 1.0, benchmark, metric) for each in (0.0, 1.0))
    if not math.isfinite(unit.value):
        raise ValueError(f"{benchmark.name} has no common scale")
    return start.value + (unit.value - start.value) * values, errors * (unit.stderr or 0.0)
