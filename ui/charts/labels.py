"""Direct labels at the end of lines: how wide text is, and how labels are kept apart."""

import unicodedata
from collections.abc import Sequence

from ui import filters

LINE_HEIGHT = 14.0


def text_width(text: str, size: float = 12.0) -> float:
    """Pixels of a text in the widest of the usual system fonts, roughly: a label must fit in every one of them."""
    return size * sum(_width(letter) for letter in text)


def _width(letter: str) -> float:
    if unicodedata.combining(letter):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 1.0
    if letter in "il.,:;|!'jI- ":
        return 0.38
    return 0.95 if letter in "mwMW@%" else 0.63


def fit(text: str, pixels: float, size: float = 12.0) -> str:
    """The text, with its middle left out until it fits. Both ends of a name carry meaning."""
    if text_width(text, size) <= pixels:
        return text
    length = len(text) - 1
    while length > 3 and text_width(filters.middle(text, length), size) > pixels:
        length -= 1
    return filters.middle(text, length)


def spread(wanted: Sequence[float], low: float, high: float, gap: float = LINE_HEIGHT) -> list[float]:
    """Positions near the wanted ones, in their order, at least `gap` apart and inside [low, high].

    One pass downwards pushes overlapping labels apart, one pass upwards brings the last ones back inside.
    Where there are more labels than room, they share it evenly.
    """
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    placed = [0.0] * len(wanted)
    floor = low
    for index in order:
        placed[index] = floor = max(floor, min(wanted[index], high))
        floor += gap
    ceiling = high
    for index in reversed(order):
        placed[index] = ceiling = min(placed[index], ceiling)
        ceiling -= gap
    return placed
