"""Scores on one scale: larger is better, 0 is guessing, 1 is perfect.

Scale, chance and direction come from the benchmark table, never from how large a value happens to be:
a figure of 0.9 on a 0-to-100 scale is 0.9 %, not 90 %.
"""

import math
from dataclasses import dataclass

from registry.evals.catalogue import LOG_METRICS, Benchmark
from registry.types import Direction

# The value of a perfect answer, per scale. Raw scales and logarithms have none.
TOP = {"fraction": 1.0, "percent": 100.0, "ten": 10.0}


@dataclass(frozen=True, slots=True)
class Oriented:
    """A score and its standard error (None where unknown) on the common scale."""

    value: float
    stderr: float | None


def is_logarithmic(benchmark: Benchmark, metric: str) -> bool:
    """Whether the figure is a perplexity, which is compared as its logarithm. Bits per byte already are one."""
    return benchmark.scale == "log" and metric in LOG_METRICS


def has_points(benchmark: Benchmark) -> bool:
    """Whether one point (a hundredth of the way from chance to perfect) means something for this benchmark."""
    return benchmark.scale in TOP


def orient(value: float, stderr: float | None, benchmark: Benchmark, metric: str) -> Oriented:
    """The score with larger as better, and chance at 0 where the scale has a top; not clipped.

    s' = (s - c)/(top - c), SE' = SE/(top - c); lower is better: negated; a target t: 1 - |s - t|/max(t, 1 - t),
    which for .5 is 1 - 2|s - .5|; a perplexity: -ln, with SE/value as its error (the delta method).
    Raises ValueError for a perplexity that is not positive.
    """
    if is_logarithmic(benchmark, metric):
        if value <= 0:
            raise ValueError(f"a perplexity of {value:g} has no logarithm")
        return Oriented(-math.log(value), None if stderr is None else stderr / value)
    top = TOP.get(benchmark.scale)
    chance = benchmark.chance or 0.0
    if benchmark.direction is Direction.TARGET and top is not None:
        target = 0.5 if benchmark.chance is None else chance / top
        span = max(target, 1 - target) * top
        folded = 1 - abs(value - target * top) / span
        return Oriented(folded, None if stderr is None else stderr / span)
    offset, span = (0.0, 1.0) if top is None else (chance, top - chance)
    sign = -1 if benchmark.direction is Direction.LOWER else 1
    return Oriented(sign * (value - offset) / span, None if stderr is None else stderr / span)
