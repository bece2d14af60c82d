"""Spikes of the training loss: where the newest one began and ended.

Each point is held against the median of the 64 before it, in units of their median absolute deviation, so that neither
the trend nor an earlier spike moves the measure. From the first point that stands out, the level before it is kept
until three points in a row are back at it: a loss that stays up never becomes its own normal. NaN and infinity stand
out always.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from registry.evals.percentiles import Floats, Integers

WINDOW: Final = 64  # points that the local level and spread are taken from
LEAST_HISTORY: Final = 16  # and the fewest that say anything
STANDS_OUT: Final = 6.0  # in robust standard deviations: once in a billion points of Gaussian noise
LEAST_RISE: Final = 0.02  # of the level: what is less is no spike, however quiet the curve
QUIET: Final = 3  # points in a row back at the level end a spike
LEAD_STEPS: Final = 100  # [assumed] how long before the first point that stands out the cause may lie
TO_SIGMA: Final = 1.4826  # from the median absolute deviation to a standard deviation

SUSTAINED, SINGLE, NON_FINITE = "sustained", "single-step", "non-finite"


@dataclass(frozen=True, slots=True)
class Spike:
    """`from_step` and `to_step` are the first and the last point that stood out; `after_step` the last good one.

    `shape`: sustained, single-step (one point, and back at once), or non-finite. `level` is the loss before, `peak` the
    highest of the spike (NaN where it was not finite). `recovered`: the curve came back to the level by itself.
    """

    from_step: int
    to_step: int
    after_step: int | None
    shape: str
    level: float
    peak: float
    points: int
    recovered: bool


def find_spikes(steps: Sequence[int] | Integers, values: Sequence[float] | Floats) -> list[Spike]:
    """The spikes of a curve, oldest first. Steps ascend; a curve of fewer than 17 points only has non-finite ones."""
    at, loss = np.asarray(steps, dtype=np.int64), np.asarray(values, dtype=float)
    if len(at) != len(loss):
        raise ValueError("steps and values must have one entry per point")
    if not len(at):
        return []
    level, limit = _local_level(loss)
    out = ~np.isfinite(loss) | (loss > limit)
    found, place = list[Spike](), 0
    while True:
        ahead = np.flatnonzero(out[place:])
        if not len(ahead):
            return found
        first = place + int(ahead[0])
        last, place, recovered = _end_of(loss, first, float(limit[first]))
        found.append(_spike(at, loss, float(level[first]), first, last, recovered))


def _local_level(loss: Floats) -> tuple[Floats, Floats]:
    """(the median of the points before each, and what a point must not pass); NaN where the history is too short."""
    filled = _filled(loss)
    level, spread = np.full(len(loss), np.nan), np.full(len(loss), np.nan)
    for start in range(LEAST_HISTORY, min(WINDOW, len(loss))):
        level[start] = np.median(filled[:start])
        spread[start] = np.median(np.abs(filled[:start] - level[start]))
    if len(loss) > WINDOW:
        windows = sliding_window_view(filled, WINDOW)[:-1]
        level[WINDOW:] = np.median(windows, axis=1)
        spread[WINDOW:] = np.median(np.abs(windows - level[WINDOW:, None]), axis=1)
    rise = np.maximum(STANDS_OUT * TO_SIGMA * spread, LEAST_RISE * np.abs(level))
    return level, np.where(np.isnan(level), np.inf, level + rise)


def _filled(loss: Floats) -> Floats:
    """Non-finite points take the last finite value before them: they say nothing of the level."""
    finite = np.isfinite(loss)
    if finite.all() or not finite.any():
        return np.where(finite, loss, 0.0)
    last = np.maximum.accumulate(np.where(finite, np.arange(len(loss)), 0))
    filled = loss[last]
    return np.where(np.isfinite(filled), filled, loss[finite][0])


def _end_of(loss: Floats, first: int, limit: float) -> tuple[int, int, bool]:
    """(the last point that stands out, where to look on, whether the curve came back) of a spike from `first`."""
    last, calm = first, 0
    for place in range(first + 1, len(loss)):
        if not math.isfinite(loss[place]) or loss[place] > limit:
            last, calm = place, 0
        else:
            calm += 1
            if calm == QUIET:
                return last, place + 1, True
    return last, len(loss), False


def _spike(at: Integers, loss: Floats, level: float, first: int, last: int, recovered: bool) -> Spike:
    seen = loss[first : last + 1]
    finite = bool(np.isfinite(seen).all())
    return Spike(
        from_step=int(at[first]),
        to_step=int(at[last]),
        after_step=int(at[first - 1]) if first else None,
        shape=NON_FINITE if not finite else SINGLE if first == last and recovered else SUSTAINED,
        level=level,
        peak=float(seen.max()) if finite else math.nan,
        points=last - first + 1,
        recovered=recovered,
    )


def newest_that_matters(spikes: Sequence[Spike]) -> Spike | None:
    """The newest spike that was more than one point; where there is none, the newest at all."""
    serious = [each for each in spikes if each.shape != SINGLE]
    return (serious or spikes or [None])[-1]  # type: ignore[list-item]


def cause_within(spike: Spike) -> tuple[int, int]:
    """(the step from which the cause may lie, the step at which the spike began at the latest).

    Between two logged points nobody knows where it began: right after the last good one at the earliest.
    """
    began = spike.from_step if spike.after_step is None else min(spike.from_step, spike.after_step + 1)
    return min(began, spike.from_step - LEAD_STEPS), began
