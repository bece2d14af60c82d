"""The name of each line at its end: beside the plot where the line goes on to its edge, else in the plot.

A line that ends early is named where it ends: a stroke from there to the edge would look like data. Of the places
around its end the first is taken that covers the fewest lines; where every one would cover another name, none is.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from ui.charts.data import LineChart, Series
from ui.charts.frame import Frame, Pixel, Size
from ui.charts.labels import fit, spread, text_width
from ui.charts.markup import join, tag

EDGE_SHARE = 0.04  # of the plot's width: a line that ends within it is named beside the plot
EARLY_UP_TO = 12  # names in the plot; of more lines that end early none is named, each point's title names its own
# Where a name may stand around its line's end: pixels across and down, and whether it ends there instead of beginning.
_PLACES = ((8, 4, False), (6, -8, False), (6, 18, False), (-6, -8, True), (-6, 18, True))


@dataclass(frozen=True)
class Box:
    left: float
    right: float
    top: float
    bottom: float

    def meets(self, other: "Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def is_crossed(self, stretch: Sequence[Pixel], xs: Sequence[float]) -> bool:
        """Whether a line goes through; `xs` are the first coordinates of `stretch`, ascending."""
        first, last = max(0, bisect_left(xs, self.left) - 1), bisect_right(xs, self.right)
        return any(self._holds_part_of(*pair) for pair in pairwise(stretch[first : last + 1]))

    def _holds_part_of(self, start: Pixel, end: Pixel) -> bool:
        heights = []
        for x in (max(start[0], self.left), min(end[0], self.right)):
            share = (x - start[0]) / (end[0] - start[0]) if end[0] > start[0] else 0.0
            heights.append(start[1] + share * (end[1] - start[1]))
        if end[0] == start[0]:
            heights = [start[1], end[1]]
        return min(heights) < self.bottom and max(heights) > self.top


def ends_of(chart: LineChart, frame: Frame) -> list[tuple[Series, Pixel]]:
    """The last place of each line that is named, where there are several to tell apart."""
    ends = []
    for line in chart.series:
        last = next((at for at in map(frame.pixel, reversed(line.points)) if at), None)
        if last is not None and line.written:
            ends.append((line, last))
    return ends if len(ends) > 1 else []


def ends_early(at: Pixel, frame: Frame) -> bool:
    return frame.right - at[0] > EDGE_SHARE * (frame.right - frame.left)


def end_labels(chart: LineChart, frame: Frame, size: Size, lines: Sequence[Sequence[Pixel]]) -> Markup:
    """`lines`: what is drawn of every line, which a name in the plot should not cover."""
    ends = ends_of(chart, frame)
    late = [end for end in ends if not ends_early(end[1], frame)]
    early = [end for end in ends if ends_early(end[1], frame)]
    beside, taken = _beside(late, frame, size)
    return join([*beside, *(_within(early, taken, lines, frame) if len(early) <= EARLY_UP_TO else [])])


def _beside(ends: Sequence[tuple[Series, Pixel]], frame: Frame, size: Size) -> tuple[list[Markup], list[Box]]:
    """Names beside the plot, kept apart; a hair line leads to each, as it may have had to move."""
    parts, taken = [], []
    heights = spread([at[1] for _, at in ends], frame.top, frame.bottom)
    for (line, (x, y)), height in zip(ends, heights, strict=True):
        name = fit(line.written, size.width - frame.right - 14)
        lead = tag("path", d=f"M{x + 4:.1f} {y:.1f}L{frame.right + 9:.1f} {height:.1f}", class_="lead")
        label = tag("text", tag("title", line.name), name, x=frame.right + 12, y=height + 4, class_="label")
        parts.append(tag("g", lead, label, class_=f"c{line.colour % 7}"))
        taken.append(Box(frame.right + 4, size.width, height - 7, height + 7))
    return parts, taken


def _within(
    ends: Sequence[tuple[Series, Pixel]], taken: Sequence[Box], lines: Sequence[Sequence[Pixel]], frame: Frame
) -> list[Markup]:
    parts, taken = [], list(taken)
    known = [(line, [x for x, _ in line]) for line in lines if len(line) > 1] if ends else []
    for line, at in ends:
        fitting = [(box, place) for box, place in _boxes(line.written, at, frame) if not any(map(box.meets, taken))]
        if fitting:
            box, (across, down, before) = min(fitting, key=lambda each: sum(each[0].is_crossed(*one) for one in known))
            taken.append(box)
            label = tag(
                "text",
                tag("title", line.name),
                line.written,
                x=at[0] + across,
                y=at[1] + down,
                class_="label",
                text_anchor="end" if before else None,
            )
            parts.append(label)
    return parts


def _boxes(name: str, at: Pixel, frame: Frame) -> list[tuple[Box, tuple[int, int, bool]]]:
    """What a name would cover at each of its places that lie inside the plot."""
    width, boxes = text_width(name), []
    for across, down, before in _PLACES:
        left, base = at[0] + across - (width if before else 0.0), at[1] + down
        box = Box(left, left + width, base - 10, base + 3)
        if (
            frame.left <= box.left
            and box.right <= frame.right
            and frame.top - 4 <= box.top
            and box.bottom <= frame.bottom
        ):
            boxes.append((box, (across, down, before)))
    return boxes
