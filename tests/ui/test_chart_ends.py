"""Where the names of lines stand: at the end of their own line, and never led to over data that is not theirs."""

import re
import xml.etree.ElementTree as ElementTree

from registry.attempts import AttemptRow
from registry.series import Curve
from tests.ui.test_charts import drawn
from ui.charts import LineChart, Point, Series
from ui.charts.ends import EARLY_UP_TO
from ui.curves import curve_series


def names(svg: ElementTree.Element) -> dict[str, tuple[float, float]]:
    """Each written name with the place where it begins (or ends)."""
    found = {}
    for node in svg.iter("text"):
        if node.get("class") == "label":
            found["".join(node.itertext()).removeprefix(node.findtext("title", ""))] = (
                float(node.get("x", "nan")),
                float(node.get("y", "nan")),
            )
    return found


def leads(svg: ElementTree.Element) -> list[list[float]]:
    found = [node.get("d", "") for node in svg.iter("path") if node.get("class") == "lead"]
    return [[float(number) for number in re.findall(r"-?[\d.]+", path)] for path in found]


def flat(name: str, first: int, last: int, height: float = 1.0) -> Series:
    return Series(name, tuple(Point(step, height) for step in range(first, last + 1, 10)))


def width_of(svg: ElementTree.Element) -> float:
    return float((svg.get("viewBox") or "").split()[2])


def test_no_stroke_leads_on_from_a_line_that_ends_before_the_edge() -> None:
    for svg in drawn(LineChart("k", "lr", (flat("attempt 1", 0, 200), flat("attempt 2", 120, 160)))):
        assert all(abs(x2 - x1) < 0.1 * width_of(svg) for x1, _, x2, _ in leads(svg))
        assert len(leads(svg)) == 1  # of attempt 1, which reaches the edge
        assert set(names(svg)) == {"attempt 1", "attempt 2"}


def test_a_name_in_the_plot_stands_at_its_end_and_covers_no_line() -> None:
    chart = LineChart("k", "lr", (flat("attempt 1", 0, 200), flat("attempt 2", 100, 120)))
    for svg in drawn(chart):
        dots = [node.get("transform", "") for node in svg.iter("path") if node.get("class") == "dot"]
        x, y = map(float, re.findall(r"[\d.]+", dots[-1]))
        at, height = names(svg)["attempt 2"]
        assert abs(at - x) < 12
        assert abs(height - y) > 6  # above or below: the line of attempt 1 runs through


def test_names_that_would_cover_each_other_are_left_to_the_titles_of_points() -> None:
    lines = tuple(flat(f"attempt {number}", 0, 100) for number in range(8))
    for svg in drawn(LineChart("k", "lr", (*lines, flat("whole", 0, 200)))):
        written = names(svg)
        assert "whole" in written
        assert 1 < len(written) < 8
        assert len(set(written.values())) == len(written)


def test_of_very_many_early_ends_none_is_named() -> None:
    lines = tuple(flat(f"attempt {number}", 0, 10 * (1 + number % 9), number) for number in range(EARLY_UP_TO + 1))
    for svg in drawn(LineChart("k", "loss", (*lines, flat("whole", 0, 200)))):
        assert set(names(svg)) <= {"whole"}


def attempt(number: int, live_through: int | None) -> AttemptRow:
    known = dict.fromkeys(AttemptRow.__dataclass_fields__)
    return AttemptRow(**known | {"number": number, "live_through_step": live_through})  # type: ignore[arg-type]


def test_after_a_rollback_each_attempt_is_named_where_its_own_points_end() -> None:
    steps = tuple(range(0, 201, 10))
    first = Curve(1, "lr", steps, tuple(3e-4 for _ in steps))
    second = Curve(2, "lr", (130, 140, 150, 160), (3e-4,) * 4)
    lines = curve_series([first, second], [attempt(1, 120), attempt(2, None)], 1)
    assert [line.written for line in lines] == ["", "attempt 1", "attempt 2"]
    for svg in drawn(LineChart("k", "lr", lines)):
        places = names(svg)
        assert places["attempt 1"][0] > places["attempt 2"][0]
        assert places["attempt 1"][0] > 0.6 * width_of(svg)
