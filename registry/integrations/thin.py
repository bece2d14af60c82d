"""Fewer points of a curve, as many as a plot can show: pure, and the same again for a curve that only grew.

Steps fall into equal stretches whose width is a power of two; of each stretch the first, smallest, largest and last
point stay, so that spikes are seen. Steps of checkpoints stay exactly, and so does the first point that is not finite.
"""

import math
from collections.abc import Collection, Sequence
from typing import Final

MAX_POINTS: Final = 2_000


def thin(
    steps: Sequence[int], values: Sequence[float], keep: Collection[int], *, most: int = MAX_POINTS
) -> tuple[list[int], list[float]]:
    """At most about `most` points and those at the steps of `keep`. Steps ascend; as many values as steps."""
    if len(steps) <= most:
        return list(steps), list(values)
    width = _width(steps[-1] - steps[0] + 1, most // 4)
    chosen: set[int] = {0, len(steps) - 1}
    wanted = set(keep)
    start = 0
    for at in range(1, len(steps) + 1):
        if at == len(steps) or steps[at] // width != steps[start] // width:
            chosen |= _of_stretch(values, start, at)
            start = at
    chosen |= {at for at, step in enumerate(steps) if step in wanted}
    order = sorted(chosen)
    return [steps[at] for at in order], [values[at] for at in order]


def _width(span: int, stretches: int) -> int:
    """The smallest power of two that cuts the span into no more than so many stretches."""
    return 1 << max(0, math.ceil(math.log2(max(1, span / max(1, stretches)))))


def _of_stretch(values: Sequence[float], start: int, end: int) -> set[int]:
    finite = [at for at in range(start, end) if math.isfinite(values[at])]
    chosen = {start, end - 1}
    if finite:
        chosen |= {min(finite, key=values.__getitem__), max(finite, key=values.__getitem__)}
    odd = next((at for at in range(start, end) if not math.isfinite(values[at])), None)
    return chosen if odd is None else chosen | {odd}
