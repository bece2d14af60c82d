"""The area that a plot is drawn in: its two sizes, its axes, and where a point lies on them."""

from collections.abc import Sequence
from dataclasses import dataclass

from ui import filters
from ui.charts.axis import Axis
from ui.charts.data import Point

Pixel = tuple[float, float]


@dataclass(frozen=True)
class Size:
    name: str
    width: float
    height: float
    label_share: float
    x_ticks: int


WIDE = Size("wide", 720.0, 280.0, 0.3, 8)
NARROW = Size("narrow", 343.0, 250.0, 0.28, 4)


@dataclass(frozen=True)
class Frame:
    """The plot area in pixels with its two axes."""

    left: float
    right: float
    top: float
    bottom: float
    x: Axis
    y: Axis

    def pixel(self, point: Point) -> Pixel | None:
        """Where a point lies; None for a gap, and for what an axis has no place for."""
        height = filters.finite(point.y)
        x, y = self.x.place(point.x), self.y.place(height) if height is not None else None
        return None if x is None or y is None else (x, y)

    def unbroken(self, points: Sequence[Point]) -> list[list[Pixel]]:
        """The stretches between gaps, in pixels. The place of zero on a log axis joins nothing."""
        parts: list[list[Pixel]] = [[]]
        for point in points:
            at = self.pixel(point)
            if at is None or (self.x.log and point.x == 0):
                parts += [[at], []] if at else [[]]
            else:
                parts[-1].append(at)
        return [part for part in parts if part]
