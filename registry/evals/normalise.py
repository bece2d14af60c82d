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
        target = target_of(benchmark)
        span = max(target, top - target)
        folded = 1 - abs(value - target) / span
        return Oriented(folded, None if stderr is None else stderr / span)
    offset, span = (0.0, 1.0) if top is None else (chance, top - chance)
    sign = -1 if benchmark.direction is Direction.LOWER else 1
    return Oriented(sign * (value - offset) / span, None if stderr is None else stderr / span)


def bounds(benchmark: Benchmark) -> tuple[float, float] | None:
    """The worst and the best that a score can be on the common scale; None where its own scale has no top."""
    top = TOP.get(benchmark.scale)
    if top is None:
        return None
    if benchmark.direction is Direction.TARGET:
        return 0.0, 1.0
    worst, best = sorted(orient(end, None, benchmark, "").value for end in (0.0, top))
    return worst, best


def units_of(benchmark: Benchmark) -> float | None:
    """How many units of its own one unit of the common scale is; None where its own scale has no top."""
    top = TOP.get(benchmark.scale)
    if top is None:
        return None
    if benchmark.direction is Direction.TARGET:
        target = target_of(benchmark)
        return max(target, top - target)
    return top - (benchmark.chance or 0.0)


def target_of(benchmark: Benchmark) -> float:
    """The value that is best, where neither more nor less is: half of the scale unless the table says another."""
    return TOP[benchmark.scale] / 2 if benchmark.chance is None else benchmark.chance
