"""Line charts as SVG, drawn twice, for a desk and for a phone: text that shrinks with a plot is unreadable.

The stylesheet shows one of the two. Nothing here needs a script; hovering shows each point's title.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from markupsafe import Markup

from ui import filters
from ui.charts.axis import make_axis, thin_points
from ui.charts.data import Band, LineChart, Mark, Point, Series
from ui.charts.ends import end_labels, ends_early, ends_of
from ui.charts.frame import NARROW, WIDE, Frame, Pixel, Size
from ui.charts.labels import fit, text_width
from ui.charts.markup import join, path_of, tag
from ui.charts.signs import checkpoint_sign, mark_sign, marker

DOTS_UP_TO = 60  # points of a line that get a sign each; of more, so many at most
MARKS_UP_TO = 6  # marks with a written label; more keep their sign and title
MARK_GAP = 7.0  # pixels between two checkpoint signs on the axis; nearer ones are drawn once


def line_chart(chart: LineChart) -> Markup:
    """Both drawings of a chart. Draw only what has data: `has_data` says so."""
    return join([_draw(chart, size) for size in (WIDE, NARROW)])


def has_data(chart: LineChart) -> bool:
    return any(p.y is not None for line in chart.series for p in line.points)


def description(chart: LineChart) -> str:
    """The chart in words, for those who hear it: per line its ends, lowest and highest; then the marks."""
    parts = [_in_words(line, chart) for line in chart.series]
    kinds = {kind: sum(mark.kind == kind for mark in chart.marks) for kind in {m.kind for m in chart.marks}}
    parts += [filters.plural(count, f"{kind} mark") for kind, count in sorted(kinds.items())]
    return ". ".join(parts) + "."


def _in_words(line: Series, chart: LineChart) -> str:
    finite = [p for p in line.points if filters.finite(p.y) is not None]
    odd = sum(p.y is not None for p in line.points) - len(finite)
    if not finite:
        return f"{line.name}: no finite value" + (f", {odd} not finite" if odd else "")
    heights = [p.y for p in finite if p.y is not None]
    first, last = finite[0], finite[-1]
    return (
        f"{line.name}: {filters.number(first.y)} at {chart.x_label} {filters.number(first.x, 9)}, "
        f"{filters.number(last.y)} at {filters.number(last.x, 9)}, "
        f"lowest {filters.number(min(heights))}, highest {filters.number(max(heights))}"
        + (f", {odd} not finite" if odd else "")
    )


def _draw(chart: LineChart, size: Size) -> Markup:
    frame = _frame(chart, size)
    title_id, text_id = f"{chart.key}-{size.name}-t", f"{chart.key}-{size.name}-d"
    thinned = [thin_points(line.points, max(50, round(frame.right - frame.left))) for line in chart.series]
    stretches = [frame.unbroken(points) for points in thinned]
    linked = any(p.href for s in chart.series for p in s.points) or any(m.href for m in chart.marks)
    return tag(
        "svg",
        tag("title", chart.title, id=title_id),
        tag("desc", description(chart), id=text_id),
        _bands(chart.bands, frame),
        _grid(chart, frame, size),
        _marks(chart.marks, frame, size),
        join([_line(at, chart, frame, *drawn) for at, drawn in enumerate(zip(thinned, stretches, strict=True))]),
        end_labels(chart, frame, size, [part for parts in stretches for part in parts]),
        class_=f"chart {size.name}",
        viewBox=f"0 0 {size.width:.0f} {size.height:.0f}",
        role="group" if linked else "img",
        aria_labelledby=f"{title_id} {text_id}",
    )


def _frame(chart: LineChart, size: Size) -> Frame:
    points = [p for line in chart.series for p in line.points]
    top, bottom = (38.0 if _has_signs(chart.marks) else 26.0), size.height - 36.0
    y = make_axis(list(_heights(points)), bottom, top, log=chart.y_log)
    left = min(max([text_width(text) for _, _, text in y.ticks(5)] or [20.0]), 72.0) + 8.0
    xs = [p.x for p in points] + [b for band in chart.bands for b in (band.start, band.end)]
    right = size.width - 12.0
    x = make_axis(xs, left + 6.0, right, log=chart.x_log, steps=True)
    whole = Frame(left, right, top, bottom, x, y)
    beside = [text_width(line.written) for line, at in ends_of(chart, whole) if not ends_early(at, whole)]
    if not beside:
        return whole
    right = size.width - min(max(beside), size.width * size.label_share) - 16.0
    return replace(whole, right=right, x=replace(x, end_px=right))


def _heights(points: list[Point]) -> Iterable[float]:
    """Every height that must fit, ends of error bars included."""
    for point in points:
        height, error = filters.finite(point.y), filters.finite(point.error) or 0.0
        if height is not None:
            yield from (height - error, height, height + error)


def _has_signs(marks: tuple[Mark, ...]) -> bool:
    return any(mark.kind != "checkpoint" for mark in marks)


def _grid(chart: LineChart, frame: Frame, size: Size) -> Markup:
    parts = []
    for _, at, text in frame.y.ticks(5):
        parts.append(tag("line", x1=frame.left, x2=frame.right, y1=at, y2=at, class_="grid"))
        parts.append(tag("text", text, x=frame.left - 6, y=at + 4, class_="tick", text_anchor="end"))
    edge = -math.inf
    for _, at, text in frame.x.ticks(size.x_ticks):
        half = text_width(text) / 2
        if at - half < edge or at + half > size.width:
            continue
        edge = at + half + 8
        parts.append(tag("line", x1=at, x2=at, y1=frame.bottom, y2=frame.bottom + 4, class_="axis"))
        parts.append(tag("text", text, x=at, y=frame.bottom + 17, class_="tick", text_anchor="middle"))
    parts.append(tag("line", x1=frame.left, x2=frame.right, y1=frame.bottom, y2=frame.bottom, class_="axis"))
    if frame.x.zero_px is not None:
        parts.append(_axis_break(frame))
    return join([*parts, *_axis_names(chart, frame, size)])


def _axis_break(frame: Frame) -> Markup:
    """Two strokes where a log axis leaves out the way down to zero."""
    at = ((frame.x.zero_px or 0.0) + frame.x.start_px) / 2
    strokes = "".join(f"M{at + d - 2:.1f} {frame.bottom + 4:.1f}l4 -8" for d in (-2.0, 2.0))
    return tag("path", d=strokes, class_="axis")


def _axis_names(chart: LineChart, frame: Frame, size: Size) -> list[Markup]:
    """The names of the axes; y says where it starts and whether it is logarithmic."""
    log = ", log scale" if chart.y_log else ""
    nothing = "no value above 0" if chart.y_log else "no finite value"
    begins = nothing if frame.y.blank else f"axis starts at {filters.number(frame.y.low, 3)}"
    start = f"{chart.y_label}{log}; {begins}"
    x_name = f"{chart.x_label} (log scale)" if chart.x_log else chart.x_label
    return [
        tag("text", fit(start, size.width - 4), x=0, y=12, class_="name"),
        tag("text", x_name, x=frame.right, y=size.height - 4, class_="name", text_anchor="end"),
    ]


def _bands(bands: tuple[Band, ...], frame: Frame) -> Markup:
    parts = []
    for band in bands:
        start, end = frame.x.place(band.start), frame.x.place(band.end)
        if start is None or end is None:
            continue
        box = tag(
            "rect",
            tag("title", band.label),
            x=min(start, end),
            width=max(2.0, abs(end - start)),
            y=frame.top,
            height=frame.bottom - frame.top,
            class_="band",
        )
        parts.append(box)
    return join(parts)


def _written(label: str, room: float) -> str:
    """The label, or its beginning that says which one; '' rather than a part of a word: its title says all."""
    shorter = (label, label.partition(" from ")[0].partition(",")[0])
    return next((text for text in shorter if text_width(text) <= room), "")


def _marks(marks: tuple[Mark, ...], frame: Frame, size: Size) -> Markup:
    parts, last = [], -math.inf
    labelled = sum(mark.kind != "checkpoint" for mark in marks) <= MARKS_UP_TO
    placed = [(frame.x.place(mark.x), mark) for mark in sorted(marks, key=lambda m: m.x)]
    signs = [at for at, mark in placed if at is not None and mark.kind != "checkpoint"]
    for at, mark in placed:
        if at is None or not frame.left <= at <= frame.right + 0.5:
            continue
        if mark.kind == "checkpoint":
            if at - last < MARK_GAP:
                continue
            last = at
            parts.append(checkpoint_sign(mark, at, frame.bottom))
        else:
            room = min([other - 8 for other in signs if other > at] or [size.width]) - at - 16
            text = _written(mark.label, room) if labelled else ""
            parts.append(mark_sign(mark, at, frame.top, frame.bottom, text))
    return join(parts)


def _line(
    index: int, chart: LineChart, frame: Frame, points: tuple[Point, ...], stretches: Sequence[Sequence[Pixel]]
) -> Markup:
    """A line of the chart, of its points that the plot can show and their unbroken stretches in pixels."""
    line = chart.series[index]
    style = f"c{line.colour % 7}{' muted' if line.muted else ''}"
    repeats = sum(other.colour == line.colour and not other.muted for other in chart.series[:index])
    dash = (None, "6 3", "2 3", "8 3 2 3")[min(repeats, 3)] if not line.muted else None
    parts = [tag("path", d=path_of(part), class_="line", stroke_dasharray=dash) for part in stretches if len(part) > 1]
    alone = {part[0] for part in stretches if len(part) == 1}
    shape = ("circle", "square", "triangle", "diamond")[min(repeats, 3)]
    parts += [_dot(point, line, chart, frame, shape) for point in signed_points(points, frame, alone)]
    return tag("g", join(parts), class_=style)


def signed_points(points: tuple[Point, ...], frame: Frame, alone: set[tuple[float, float]]) -> list[Point]:
    """The points with a sign of their own: every one of a short line; of a long one those that no line shows
    (alone between gaps, or not finite) and, where errors are known, some at even distances to carry their bars.
    """
    if len(points) <= DOTS_UP_TO:
        return list(points)
    odd = [point for point in points if point.y is not None and not math.isfinite(point.y)]
    single = [point for point in points if frame.pixel(point) in alone] if alone else []
    with_error = [point for point in points if point.error and filters.finite(point.y) is not None]
    return [*_some(odd), *_some(single), *_some(with_error), *_some([point for point in points if point.lent])]


def _some(points: list[Point]) -> list[Point]:
    return points[:: math.ceil(len(points) / DOTS_UP_TO)] if points else []


def _dot(point: Point, line: Series, chart: LineChart, frame: Frame, shape: str) -> Markup:
    """A point's sign with its title, its error bar, or the cross of a value that is not finite."""
    at = frame.pixel(point)
    title = f"{line.name}, {chart.x_label} {filters.number(point.x, 9)}: {filters.score(point.y, point.error)}"
    title += f", {point.lent}" if point.lent else ""
    if at is None:
        x = frame.x.place(point.x)
        if point.y is None or x is None or math.isfinite(point.y):
            return Markup("")
        edge = frame.bottom - 6 if point.y == -math.inf else frame.top + 2
        return _linked(point.href, tag("g", tag("title", title), marker("cross", x, edge), class_="odd"))
    signs = join([_error_bar(point, at[0], frame), marker(shape, *at)])
    return _linked(point.href, tag("g", tag("title", title), signs, class_="lent" if point.lent else None))


def _error_bar(point: Point, x: float, frame: Frame) -> Markup:
    height, error = filters.finite(point.y), filters.finite(point.error)
    if height is None or not error:
        return Markup("")
    low, high = frame.y.place(height - error), frame.y.place(height + error)
    low = frame.bottom if low is None else low  # below zero on a log axis
    if high is None:
        return Markup("")
    return tag("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}m-3 0h6M{x - 3:.1f} {low:.1f}h6", class_="error")


def _linked(href: str | None, inner: Markup) -> Markup:
    return tag("a", inner, href=href) if href else inner
