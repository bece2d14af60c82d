"""Axes that start where the data does: nice ticks, a log axis with a place for zero, thinning to pixels."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from ui import filters
from ui.charts.data import Point
from ui.charts.thin import thin_indexes

ZERO_GAP = 26.0  # pixels between the place of zero and the start of a log axis


@dataclass(frozen=True)
class Axis:
    """A mapping of values to pixels. On a log axis `zero_px` is the place of 0, apart from the scale.

    `whole`: its values are whole, such as steps, and so are its ticks. `blank`: no value has a place, and none is
    invented: there is no tick.
    """

    low: float
    high: float
    start_px: float
    end_px: float
    log: bool = False
    zero_px: float | None = None
    whole: bool = False
    blank: bool = False

    def place(self, value: float) -> float | None:
        """The pixel of a value, or None where the axis has no place for it."""
        if not math.isfinite(value):
            return None
        if self.log and value <= 0:
            return self.zero_px if value == 0 else None
        low, high, at = (math.log(v) if self.log else v for v in (self.low, self.high, value))
        # Halved, as the distance of two huge numbers is beyond every float; that of two tiny ones may then be none.
        span = high / 2 - low / 2
        share = (at / 2 - low / 2) / span if span else 0.5
        return self.start_px + share * (self.end_px - self.start_px)

    def ticks(self, wanted: int) -> list[tuple[float, float, str]]:
        """(value, pixel, label) of round values within the axis, and of zero where it is set apart."""
        values = self._round_values(wanted)
        step = values[1] - values[0] if len(values) > 1 else 0.0
        step = 0.0 if self.log and step < 1 else step  # decimals are alike on a linear axis only
        placed = [(v, self.place(v), tick_text(v, step)) for v in values]
        if self.zero_px is not None:
            placed.insert(0, (0.0, self.zero_px, "0"))
        return [(v, px, text) for v, px, text in placed if px is not None]

    def _round_values(self, wanted: int) -> list[float]:
        if self.blank:
            return []
        values = log_ticks(self.low, self.high, wanted) if self.log else nice_ticks(self.low, self.high, wanted)
        if not self.whole or all(value == round(value) for value in values):
            return values
        first, last = math.ceil(self.low), math.floor(self.high)
        return nice_ticks(first, last, last - first)


def make_axis(values: Sequence[float], start_px: float, end_px: float, *, log: bool, steps: bool = False) -> Axis:
    """An axis over finite values. One of `steps` has whole ticks, and where it is a log axis a place for 0."""
    usable = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    low, high = (min(usable), max(usable)) if usable else (1.0, 1.0)
    if low == high:
        low, high = _around(low, log)
    zero_px = None
    if log and steps and any(v == 0 for v in values):
        zero_px, start_px = start_px, start_px + math.copysign(ZERO_GAP, end_px - start_px)
    whole = steps and all(v == math.floor(v) for v in usable)
    return Axis(low, high, start_px, end_px, log, zero_px, whole, blank=not usable)


def _around(value: float, log: bool) -> tuple[float, float]:
    largest = sys.float_info.max
    if log:
        return value / 1.5, min(value * 1.5, largest)
    margin = abs(value) * 0.05 or 0.5
    return max(value - margin, -largest), min(value + margin, largest)


def nice_ticks(low: float, high: float, wanted: int) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten inside [low, high]."""
    raw = (high - low) / max(1, wanted)
    if not sys.float_info.min <= raw < math.inf:
        return [low]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [index * step for index in range(first, last + 1)]


def log_ticks(low: float, high: float, wanted: int) -> list[float]:
    """Powers of ten; with less than two of them, also 2 and 5, then plain ticks."""
    first, last = math.floor(math.log10(low)), min(308, math.ceil(math.log10(high)))
    powers = [10.0**p for p in range(first, last + 1) if low * 0.999 <= 10.0**p <= high * 1.001]
    if len(powers) >= 2:
        return powers[:: math.ceil(len(powers) / max(2, wanted))]
    finer = [f * 10.0**p for p in range(first, last + 1) for f in (1, 2, 5)]
    inside = [v for v in finer if low * 0.999 <= v <= high * 1.001]
    return inside if len(inside) >= 2 else [v for v in nice_ticks(low, high, wanted) if v > 0]


def tick_text(value: float, step: float = 0.0) -> str:
    """A tick as short as it can be said: 20k, 0.45, 1e−5. Decimals follow the distance between ticks.

    Ticks nearer than a short form tells apart (it has three digits) are written whole: 143 020, 143 040.
    """
    if 10_000 <= abs(value) < 1e15 and value == round(value):
        told_apart = not step or step >= 10.0 ** (math.floor(math.log10(abs(value))) - 2)
        return filters.count(value).replace(" ", "") if told_apart else filters.grouped(int(value))
    if step and 1e-4 <= step < 1:
        return filters.fixed(value, -math.floor(math.log10(step * 1.0001)))
    return filters.number(value, 3)


def thin_points(points: Sequence[Point], columns: int) -> tuple[Point, ...]:
    """The points that a plot of so many columns can show; see `thin_indexes`."""
    kept = thin_indexes([point.x for point in points], [point.y for point in points], columns)
    return tuple(points[place] for place in kept)
