"""Thinning to what a screen can show, without losing a spike, a gap or a NaN.

A curve may have millions of points and a plot has 700 columns. Of each column the first, lowest, highest and last
point are kept, so the line looks the same and its description in words stays exact.
"""

import math
from collections.abc import Sequence

COLUMNS = 720


def thin_indexes(xs: Sequence[float], ys: Sequence[float | None], columns: int = COLUMNS) -> Sequence[int]:
    """The places to keep, ascending; `xs` ascends. Of what is missing or not finite, each column keeps the first."""
    if len(xs) <= columns * 4:
        return range(len(xs))
    import numpy as np  # only here: a process that shows no long curve does without its 25 MB

    x = np.asarray(xs, dtype=float)
    y = np.asarray([math.nan if value is None else value for value in ys], dtype=float)
    span = x[-1] - x[0]
    column = np.minimum((x - x[0]) * (columns / span if span else 0.0), columns - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    sizes = np.diff(np.append(starts, len(x)))
    finite = np.isfinite(y)
    kept = [starts, starts + sizes - 1, _firsts(~finite, starts, sizes)]
    for extreme, worst in ((np.minimum, np.inf), (np.maximum, -np.inf)):
        filled = np.where(finite, y, worst)
        ends = np.repeat(extreme.reduceat(filled, starts), sizes)
        kept.append(_firsts(finite & (filled == ends), starts, sizes))
    return [int(place) for place in np.unique(np.concatenate(kept))]


def _firsts(chosen: "np.ndarray", starts: "np.ndarray", sizes: "np.ndarray") -> "np.ndarray":  # type: ignore[name-defined]  # noqa: F821
    """The first chosen place of each column that has one."""
    import numpy as np

    places = np.flatnonzero(chosen)
    group = np.repeat(np.arange(len(starts)), sizes)[places]
    return places[np.flatnonzero(np.diff(group, prepend=-1))]
