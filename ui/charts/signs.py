"""Small signs with one meaning each, the same on every page: marks, the four-square, bars, whiskers."""

from collections.abc import Mapping

from markupsafe import Markup

from ui import filters
from ui.charts.data import Mark
from ui.charts.markup import join, tag

PIECES = ("weights", "optimizer", "data_position", "random_state")
_MARKERS = {
    "circle": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
    "square": "M-2.7 -2.7h5.4v5.4h-5.4z",
    "triangle": "M0 -3.6L3.4 2.6H-3.4z",
    "diamond": "M0 -4L4 0L0 4L-4 0z",
    "cross": "M-3.5 -3.5L3.5 3.5M-3.5 3.5L3.5 -3.5",
}
# On top of a mark's line: a flag for an attempt, a bolt's triangle for an incident, an arrow back, a tick.
_TOPS = {
    "attempt": "M0 0v-9h8l-2.5 3l2.5 3h-8",
    "incident": "M-5 0h10l-5 -9z",
    "rollback": "M5 -7H-1a4 4 0 0 0 0 8M-1 -10l-4 3l4 3",
    "good": "M-5 -5l4 4l7 -8",
}


def marker(shape: str, x: float, y: float) -> Markup:
    """A point's sign, centred there."""
    return tag("path", d=_MARKERS[shape], transform=f"translate({x:.1f} {y:.1f})", class_="dot")


def checkpoint_sign(mark: Mark, x: float, bottom: float) -> Markup:
    """A diamond on the axis, leading to the checkpoint."""
    inner = tag("g", tag("title", mark.label), marker("diamond", x, bottom), class_="mark checkpoint")
    return tag("a", inner, href=mark.href) if mark.href else inner


def mark_sign(mark: Mark, x: float, top: float, bottom: float, text: str) -> Markup:
    """A line over the whole plot with the kind's sign on top, and its label where there is room."""
    inner = tag(
        "g",
        tag("title", mark.label),
        tag("line", x1=x, x2=x, y1=top - 4, y2=bottom),
        tag("path", d=_TOPS[mark.kind], transform=f"translate({x:.1f} {top - 4:.1f})", class_="top"),
        tag("text", text, x=x + 11, y=top - 6, class_="tick") if text else Markup(""),
        class_=f"mark {mark.kind}",
    )
    return tag("a", inner, href=mark.href) if mark.href else inner


def legend_sign(kind: str) -> Markup:
    """A mark's sign alone, for the line that explains it below a plot."""
    path = (
        tag("path", d=_MARKERS["diamond"], transform="translate(8 8)", class_="dot")
        if kind == "checkpoint"
        else tag("path", d=_TOPS[kind], transform="translate(7 13)", class_="top")
    )
    return tag("svg", tag("g", path, class_=f"mark {kind}"), class_="sign", viewBox="0 0 16 16", aria_hidden="true")


def swatch(colour: int) -> Markup:
    """A run's colour beside its name."""
    box = tag("rect", x=0, y=4, width=12, height=4, class_="fill")
    return tag("svg", box, class_=f"sign swatch c{colour % 7}", viewBox="0 0 12 12", aria_hidden="true")


def pieces_in_words(pieces: Mapping[str, str]) -> str:
    """weights present, optimizer present, data position unknown, random state absent."""
    return ", ".join(f"{filters.words(name)} {pieces.get(name, 'unknown')}" for name in PIECES)


def four_square(pieces: Mapping[str, str]) -> Markup:
    """Which of the four pieces exist: filled, hollow, or hatched where it is not known."""
    squares = [
        _square(pieces.get(name, "unknown"), x, y)
        for name, (x, y) in zip(PIECES, ((1, 1), (11, 1), (1, 11), (11, 11)), strict=True)
    ]
    return tag(
        "svg",
        tag("title", pieces_in_words(pieces)),
        join(squares),
        class_="four-square",
        viewBox="0 0 20 20",
        role="img",
    )


def piece_square(presence: str) -> Markup:
    """One square of the four, alone, for the table of pieces."""
    return tag("svg", _square(presence, 1, 1), class_="one-square", viewBox="0 0 10 10", aria_hidden="true")


def _square(presence: str, x: int, y: int) -> Markup:
    kind = presence if presence in ("present", "absent") else "unknown"
    box = tag("rect", x=x + 0.5, y=y + 0.5, width=7, height=7, class_=kind)
    if kind != "unknown":
        return box
    hatch = f"M{x} {y + 4}l4 -4M{x} {y + 8}l8 -8M{x + 4} {y + 8}l4 -4"
    return join([box, tag("path", d=hatch, class_="hatch")])


def share_bar(value: float | None, largest: float, *, colour: str = "c4") -> Markup:
    """A horizontal bar: value as part of the largest one in its column."""
    finite = filters.finite(value)
    if finite is None or largest <= 0:
        return Markup("")
    width = max(0.5, min(1.0, max(0.0, finite) / largest) * 100)
    bar = tag("rect", x=0, y=0, width=width, height=8, class_="fill")
    return tag(
        "svg",
        bar,
        class_=f"bar {colour}",
        viewBox="0 0 100 8",
        preserveAspectRatio="none",
        aria_hidden="true",
    )


def percentile_bar(value: float | None, title: str) -> Markup:
    """Where a percentile lies between 0 and 1, with hair lines at the fifths that weak and strong mean."""
    at = filters.finite(value)
    if at is None:
        return Markup("")
    parts = [tag("line", x1=0, x2=100, y1=6, y2=6, class_="axis")]
    parts += [tag("line", x1=x, x2=x, y1=3, y2=9, class_="axis") for x in (20, 80)]
    parts.append(marker("circle", max(3.0, min(97.0, at * 100)), 6.0))
    return tag("svg", tag("title", title), *parts, class_="percentile", viewBox="0 0 100 12", role="img")


def whisker(delta: float | None, stderr: float | None, reach: float, verdict: str) -> Markup:
    """A difference with its 90% interval around the line of no change; `reach` is the column's half width."""
    middle, error = filters.finite(delta), filters.finite(stderr) or 0.0
    parts = [tag("line", x1=60, x2=60, y1=0, y2=14, class_="axis")]
    if middle is not None and reach > 0 and verdict != "not_comparable":
        low, high, at = (60 + 56 * _clip(v / reach) for v in (middle - 1.645 * error, middle + 1.645 * error, middle))
        parts.append(tag("line", x1=low, x2=high, y1=7, y2=7, class_="range"))
        parts.append(marker("circle", at, 7.0))
    return tag("svg", *parts, class_=f"whisker {verdict}", viewBox="0 0 120 14", aria_hidden="true")


def _clip(share: float) -> float:
    return max(-1.0, min(1.0, share))
