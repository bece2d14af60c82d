"""Charts as pure functions of data: what is drawn, what is said in words, and what is never invented."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from ui.charts import Band, LineChart, Mark, Point, Series, colour_of, description, four_square, has_data, line_chart
from ui.charts.axis import log_ticks, make_axis, nice_ticks, thin_points
from ui.charts.labels import fit, spread, text_width
from ui.charts.signs import share_bar, whisker
from ui.charts.thin import thin_indexes

HOSTILE = "<script>alert('x')</script>\" onload=\"y"


def drawn(chart: LineChart) -> list[ElementTree.Element]:
    """The two drawings, parsed: so every test also shows that the markup is well formed."""
    return list(ElementTree.fromstring(f"<both>{line_chart(chart)}</both>"))


def texts(svg: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in svg.iter("text")]


def lines(svg: ElementTree.Element) -> list[str]:
    return [node.get("d", "") for node in svg.iter("path") if node.get("class") == "line"]


def chart_of(*heights: float | None, **options: object) -> LineChart:
    points = tuple(Point(step, height) for step, height in enumerate(heights))
    return LineChart("loss", "Loss", (Series("loss", points),), **options)  # type: ignore[arg-type]


def test_a_gap_breaks_the_line() -> None:
    for svg in drawn(chart_of(3.0, 2.0, None, 1.5, 1.4)):
        assert len(lines(svg)) == 2


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_a_non_finite_value_is_a_gap_with_a_cross_that_names_it(odd: float) -> None:
    for svg in drawn(chart_of(3.0, 2.0, odd, 1.5, 1.4)):
        assert len(lines(svg)) == 2
        crosses = [node for node in svg.iter("g") if node.get("class") == "odd"]
        assert len(crosses) == 1
        assert crosses[0].findtext("title") in {"loss, step 2: NaN", "loss, step 2: ∞", "loss, step 2: −∞"}


def test_the_axis_says_where_it_starts() -> None:
    for svg in drawn(chart_of(3.0, 2.5, y_label="loss, nats")):
        assert "loss, nats; axis starts at 2.5" in texts(svg)


@pytest.mark.parametrize("first", [0, 1, 6, 10, 143_000, 2**40])
@pytest.mark.parametrize("points", [1, 2, 4])
@pytest.mark.parametrize("log", [True, False], ids=["log", "linear"])
def test_ticks_of_steps_are_whole(first: int, points: int, log: bool) -> None:
    axis = make_axis([float(first + place) for place in range(points)], 0.0, 400.0, log=log, steps=True)
    ticks = axis.ticks(8)
    assert ticks
    assert all(value == round(value) for value, _, _ in ticks)
    assert len({text for _, _, text in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("y_log", "said"), [(False, "loss; no finite value"), (True, "loss, log scale; no value above 0")]
)
def test_no_axis_is_invented_for_what_has_no_place(y_log: bool, said: str) -> None:
    for svg in drawn(chart_of(math.nan, math.inf, y_label="loss", y_log=y_log)):
        assert said in texts(svg)
        assert not [node for node in svg.iter("line") if node.get("class") == "grid"]
        assert sum(node.get("class") == "odd" for node in svg.iter("g")) == 2


def test_log_axes_are_named() -> None:
    chart = chart_of(300.0, 20.0, 8.0, y_label="perplexity", x_log=True, y_log=True)
    for svg in drawn(chart):
        assert "perplexity, log scale; axis starts at 8" in texts(svg)
        assert "step (log scale)" in texts(svg)


def test_step_zero_has_a_place_apart_on_a_log_axis() -> None:
    points = (Point(0, 10.9), Point(1, 10.8), Point(1000, 3.0))
    axis = make_axis([point.x for point in points], 40.0, 400.0, log=True, steps=True)
    assert axis.place(0) == 40.0
    assert axis.place(1) == pytest.approx(66.0)
    for svg in drawn(LineChart("loss", "Loss", (Series("loss", points),), x_log=True)):
        assert len(lines(svg)) == 1  # the point at zero joins nothing
        assert "0" in texts(svg)


def test_values_without_a_place_on_a_log_axis_are_not_drawn() -> None:
    axis = make_axis([-1.0, 0.0, 10.0, 100.0], 0.0, 100.0, log=True)
    assert axis.place(-1.0) is None
    assert axis.place(0.0) is None


def test_error_bars_fit_inside_the_plot() -> None:
    points = tuple(Point(step, 0.5, 0.1, href="/checkpoints/x") for step in range(3))
    for svg in drawn(LineChart("s", "Scores", (Series("piqa", points),))):
        bars = [node.get("d", "") for node in svg.iter("path") if node.get("class") == "error"]
        assert len(bars) == 3
        tops = [float(re.findall(r"V([-\d.]+)", bar)[0]) for bar in bars]
        assert min(tops) >= 26
        assert [link.get("href") for link in svg.iter("a")] == ["/checkpoints/x"] * 3


def test_every_kind_of_mark_has_its_own_shape_on_every_plot() -> None:
    kinds = ("attempt", "incident", "rollback", "good", "checkpoint")
    shapes = []
    for height in (1.0, 9.0):
        marks = tuple(Mark(kind, place, f"{kind} here") for place, kind in enumerate(kinds))  # type: ignore[arg-type]
        svg = drawn(chart_of(height, 2.0, 3.0, 4.0, 5.0, marks=marks))[0]
        found = {}
        for group in svg.iter("g"):
            if (group.get("class") or "").startswith("mark"):
                paths = [path.get("d") for path in group.iter("path")]
                found[(group.get("class") or "").split()[1]] = paths[-1]
        shapes.append(found)
    assert shapes[0] == shapes[1]
    assert len(set(shapes[0].values())) == len(kinds)


def test_near_checkpoints_are_drawn_once() -> None:
    marks = tuple(Mark("checkpoint", place / 100, f"checkpoint {place}") for place in range(400))
    for svg in drawn(chart_of(5.0, 4.0, 3.0, 2.0, 1.0, marks=marks)):
        assert 10 < sum(node.get("class") == "mark checkpoint" for node in svg.iter("g")) < 110


def test_hostile_names_are_text() -> None:
    series = (Series(HOSTILE, (Point(1, 1.0), Point(2, 2.0))), Series("b", (Point(1, 1.0), Point(2, 1.5))))
    marks = (Mark("attempt", 1.5, HOSTILE, f'javascript:"{HOSTILE}'),)
    markup = line_chart(LineChart("k", HOSTILE, series, marks=marks, bands=(Band(1, 2, HOSTILE),)))
    assert "<script" not in markup
    assert 'onload="' not in markup
    ElementTree.fromstring(f"<both>{markup}</both>")


def test_a_drawing_is_named_and_described_in_words() -> None:
    chart = chart_of(3.0, 2.0, math.nan, marks=(Mark("checkpoint", 1, "c"),))
    for svg in drawn(chart):
        ids = {node.get("id"): "".join(node.itertext()) for node in svg.iter() if node.get("id")}
        named, described = (svg.get("aria-labelledby") or "").split()
        assert ids[named] == "Loss"
        assert ids[described] == description(chart)
    assert description(chart) == ("loss: 3 at step 0, 2 at 1, lowest 2, highest 3, 1 not finite. 1 checkpoint mark.")


def test_drawing_uses_no_inline_style_and_no_script() -> None:
    chart = chart_of(3.0, 2.0, marks=(Mark("attempt", 1, "a", "/runs/x"),), bands=(Band(0, 1, "b"),))
    assert not re.search(r"\sstyle=|\son\w+=|<script", line_chart(chart))


def test_lines_of_one_colour_differ_by_dash_and_marker() -> None:
    points = (Point(1, 1.0), Point(2, 2.0))
    svg = drawn(LineChart("k", "t", (Series("a", points, 3), Series("b", points, 3))))[0]
    dashes = [node.get("stroke-dasharray") for node in svg.iter("path") if node.get("class") == "line"]
    assert dashes == [None, "6 3"]


def test_nothing_to_draw_is_said_before_drawing() -> None:
    assert not has_data(chart_of(None, None))
    assert not has_data(LineChart("k", "t", ()))
    assert has_data(chart_of(None, math.nan))
    drawn(chart_of(None, None))  # and drawing it anyway breaks nothing


finite = st.floats(min_value=-1e12, max_value=1e12)


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.one_of(st.none(), st.floats())), max_size=40),
    st.booleans(),
    st.booleans(),
)
def test_any_data_gives_a_drawing_inside_its_frame(
    data: list[tuple[int, float | None]], x_log: bool, y_log: bool
) -> None:
    points = tuple(Point(step, height) for step, height in sorted(data, key=lambda pair: pair[0]))
    for svg in drawn(LineChart("k", "t", (Series("s", points),), x_log=x_log, y_log=y_log)):
        _, _, width, height = map(float, (svg.get("viewBox") or "").split())
        for path in lines(svg):
            for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", path):
                assert -0.1 <= float(x) <= width
                assert -0.1 <= float(y) <= height


@pytest.mark.parametrize("values", [(0.0, 5e-324), (5e-324, 1e-323), (0.0, 1e-308), (-1.7e308, 1.7e308)], ids=repr)
@pytest.mark.parametrize("log", [True, False], ids=["log", "linear"])
def test_the_smallest_and_largest_numbers_are_drawn_too(values: tuple[float, ...], log: bool) -> None:
    points = tuple(Point(step, value) for step, value in enumerate(values))
    for svg in drawn(LineChart("k", "t", (Series("s", points),), y_log=log)):
        assert texts(svg)


@given(finite, finite)
def test_ticks_are_inside_the_axis_and_few(one: float, other: float) -> None:
    low, high = sorted((one, other))
    if high - low > 1e-6 * max(abs(low), abs(high)) and high - low > 1e-9:
        ticks = nice_ticks(low, high, 5)
        margin = (high - low) * 1e-6
        assert all(low - margin <= tick <= high + margin for tick in ticks)
        assert len(ticks) <= 12


def test_log_ticks_within_one_power_are_finer() -> None:
    assert log_ticks(7.0, 80.0, 5) == [10.0, 20.0, 50.0]
    assert log_ticks(1.0, 143_000.0, 4) == [1.0, 100.0, 10_000.0]


def test_thinning_keeps_every_spike_and_every_nan() -> None:
    points = [Point(step, 2.0) for step in range(100_000)]
    points[31_234] = Point(31_234, 9.0)
    points[77_777] = Point(77_777, math.nan)
    kept = thin_points(points, 600)
    assert len(kept) < 2600
    assert points[31_234] in kept
    assert any(point.x == 77_777 for point in kept)
    assert [point.x for point in kept] == sorted(point.x for point in kept)


@given(st.lists(st.one_of(st.none(), st.floats()), min_size=50, max_size=300), st.integers(1, 12))
def test_thinning_changes_neither_ends_nor_extremes(heights: list[float | None], columns: int) -> None:
    kept = thin_indexes(range(len(heights)), heights, columns)
    finite = [height for height in heights if height is not None and math.isfinite(height)]
    shown = [heights[place] for place in kept]
    left = [height for height in shown if height is not None and math.isfinite(height)]
    assert list(kept) == sorted(set(kept))
    assert (kept[0], kept[-1]) == (0, len(heights) - 1)
    assert [min(finite), max(finite)] == [min(left), max(left)] if finite else left == []
    assert len(kept) <= max(columns * 5, 4 * columns)


def test_a_long_line_with_errors_shows_some_bars_and_every_nan() -> None:
    points = tuple(Point(step, math.nan if step == 777 else 0.5, 0.01, "/checkpoints/x") for step in range(2000))
    for svg in drawn(LineChart("k", "t", (Series("s", points),))):
        bars = [node for node in svg.iter("path") if node.get("class") == "error"]
        assert 20 <= len(bars) <= 60
        assert sum(node.get("class") == "odd" for node in svg.iter("g")) == 1


@given(st.lists(st.floats(0, 300), max_size=30))
def test_labels_keep_their_order_and_stay_inside(wanted: list[float]) -> None:
    placed = spread(wanted, 20.0, 220.0)
    assert all(19.9 <= place <= 220.1 for place in placed)
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    heights = [placed[index] for index in order]
    assert heights == sorted(heights)


@given(st.text(max_size=80))
def test_a_fitted_label_fits(text: str) -> None:
    assert text_width(fit(text, 90.0)) <= 90.0 or len(fit(text, 90.0)) <= 4


def test_the_colour_of_a_run_depends_on_its_id_alone() -> None:
    assert colour_of("0c5k2m0143000") == colour_of("0c5k2m0143000")
    assert {colour_of(str(number)) for number in range(100)} == set(range(7))


def test_the_four_square_says_its_pieces_in_words() -> None:
    pieces = {"weights": "present", "optimizer": "absent", "data_position": "unknown"}
    svg = ElementTree.fromstring(four_square(pieces))
    assert svg.findtext("title") == ("weights present, optimizer absent, data position unknown, random state unknown")
    assert [box.get("class") for box in svg.iter("rect")] == ["present", "absent", "unknown", "unknown"]
    assert sum(path.get("class") == "hatch" for path in svg.iter("path")) == 2


def test_small_signs_draw_nothing_for_what_is_missing() -> None:
    assert share_bar(None, 1.0) == Markup("")
    assert share_bar(math.nan, 1.0) == Markup("")
    assert "range" not in whisker(None, None, 0.1, "inconclusive")
    assert "range" not in whisker(-0.2, None, 0.1, "not_comparable")
