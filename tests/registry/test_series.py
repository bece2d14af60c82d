"""Curves: every point comes back exactly as it was sent, however it was cut into stretches."""

import math
import struct
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.attempts import AttemptNotFound
from registry.ids import new_id
from registry.models import SeriesChunk
from registry.resume_points import ResumePoint
from registry.runs import RunNotFound, RunRow
from registry.series import BadSeries, Curve, Points, read_series, record_series
from tests.factories import make_attempt, make_run

STEPS = st.lists(st.one_of(st.integers(0, 50), st.integers(0, 2**63 - 1)), min_size=1, max_size=30, unique=True)
VALUES = st.floats(allow_nan=True, allow_infinity=True)


def bits(values: Any) -> list[bytes]:
    """The values as their bytes: -0.0 is not 0.0, and NaN is itself."""
    return [b"nan" if math.isnan(value) else struct.pack("<d", value) for value in values]


def curves(session: Session, run: RunRow, names: list[str] | None = None) -> list[Curve]:
    return read_series(session, run.project_id, run.id, names)


@pytest.fixture
def run(session: Session) -> RunRow:
    run = make_run(session)
    make_attempt(session, run)
    return run


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, data=st.data())
def test_every_point_comes_back_exactly(session: Session, steps: list[int], data: st.DataObject) -> None:
    run = make_run(session)
    make_attempt(session, run)
    steps.sort()
    values = data.draw(st.lists(VALUES, min_size=len(steps), max_size=len(steps)))
    cut = data.draw(st.integers(0, len(steps)))
    parts = [(steps[:cut], values[:cut]), (steps[cut:], values[cut:])]
    stretches = [Points("loss", some, these) for some, these in parts if some]
    assert record_series(session, run.id, data.draw(st.permutations(stretches))) == len(steps)
    (curve,) = curves(session, run)
    assert list(curve.steps) == steps
    assert bits(curve.values) == bits(values)


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3], ids=repr
)
def test_extreme_values_at_extreme_steps(session: Session, run: RunRow, value: float) -> None:
    record_series(session, run.id, [Points("loss", [0, 2**62, 2**63 - 1], [value] * 3)])
    (curve,) = curves(session, run)
    assert curve.steps == (0, 2**62, 2**63 - 1)
    assert bits(curve.values) == bits([value] * 3)


def test_a_stretch_sent_again_adds_nothing(session: Session, run: RunRow) -> None:
    points = Points("loss", [1, 2], [1.0, math.nan])
    for _ in range(3):
        assert record_series(session, run.id, [points]) == 2
    assert session.scalar(select(func.count()).select_from(SeriesChunk)) == 1


def test_where_stretches_overlap_the_last_to_arrive_speaks(session: Session, run: RunRow) -> None:
    record_series(session, run.id, [Points("loss", [1, 2, 3], [1.0, 1.0, 1.0])])
    record_series(session, run.id, [Points("loss", [2, 4], [2.0, 2.0])])
    record_series(session, run.id, [Points("loss", [0, 3], [3.0, 3.0])])
    (curve,) = curves(session, run)
    assert (curve.steps, curve.values) == ((0, 1, 2, 3, 4), (3.0, 1.0, 2.0, 3.0, 2.0))


def test_repeated_steps_of_another_attempt_are_another_curve(session: Session, run: RunRow) -> None:
    make_attempt(session, run, restart=True)
    record_series(session, run.id, [Points("loss", [1, 2], [9.0, 9.0], attempt=1)])
    record_series(session, run.id, [Points("loss", [2], [1.0])])  # the newest attempt's
    assert curves(session, run) == [Curve(1, "loss", (1, 2), (9.0, 9.0)), Curve(2, "loss", (2,), (1.0,))]


def test_curves_are_read_by_name(session: Session, run: RunRow) -> None:
    record_series(session, run.id, [Points(name, [1], [1.0]) for name in ("loss", "lr", "grad norm/ ü")])
    assert [curve.name for curve in curves(session, run)] == ["grad norm/ ü", "loss", "lr"]
    assert [curve.name for curve in curves(session, run, ["lr", "none"])] == ["lr"]
    assert curves(session, run, []) == []


def test_curves_of_other_runs_are_not_mixed_in(session: Session, run: RunRow) -> None:
    other = make_run(session)
    make_attempt(session, other)
    for each, value in ((run, 1.0), (other, 2.0)):
        record_series(session, each.id, [Points("loss", [1], [value])])
    assert [curve.values for curve in curves(session, run)] == [(1.0,)]


@pytest.mark.parametrize(
    ("steps", "values", "said"),
    [
        ([1, 2], [1.0], "2 steps but 1 values"),
        ([1], [1.0, 2.0], "1 steps but 2 values"),
        ([], [], "no points"),
        ([2, 1], [1.0, 1.0], "must ascend"),
        ([1, 1], [1.0, 1.0], "must ascend"),
    ],
)
def test_a_stretch_that_is_no_curve_is_refused_by_its_place_and_nothing_is_kept(
    session: Session, run: RunRow, steps: list[int], values: list[float], said: str
) -> None:
    with pytest.raises(BadSeries, match=said) as refused:
        record_series(session, run.id, [Points("lr", [1], [1.0]), Points("loss", steps, values)])
    assert refused.value.errors[0].pointer == "/1"
    assert curves(session, run) == []


def test_a_curve_belongs_to_an_attempt_that_is_there(session: Session, run: RunRow) -> None:
    with pytest.raises(AttemptNotFound) as refused:
        record_series(session, run.id, [Points("loss", [1], [1.0], attempt=7)])
    assert refused.value.errors[0].pointer == "/0/attempt"
    with pytest.raises(RunNotFound):
        record_series(session, new_id(), [Points("loss", [1], [1.0])])


def test_the_first_curve_of_a_run_without_attempts_is_of_attempt_1(session: Session) -> None:
    run = make_run(session)
    record_series(session, run.id, [Points("loss", [1], [1.0])])
    assert curves(session, run) == [Curve(1, "loss", (1,), (1.0,))]


def test_a_late_curve_of_an_older_attempt_that_was_never_announced_is_kept(session: Session) -> None:
    run = make_run(session)
    make_attempt(session, run, resumed_from=ResumePoint(attempt=1, step=5))
    record_series(session, run.id, [Points("loss", [6], [1.0]), Points("loss", [4, 5], [3.0, 2.0], attempt=1)])
    assert curves(session, run) == [Curve(1, "loss", (4, 5), (3.0, 2.0)), Curve(2, "loss", (6,), (1.0,))]


def test_a_long_curve_is_far_smaller_than_a_row_a_point(session: Session, run: RunRow) -> None:
    steps = range(0, 1_000_000, 10)
    record_series(session, run.id, [Points("lr", steps, [3e-4] * len(steps))])
    (chunk,) = session.scalars(select(SeriesChunk))
    assert len(chunk.body) < len(steps) / 40
    (curve,) = curves(session, run)
    assert (len(curve.steps), curve.steps[-1], set(curve.values)) == (100_000, 999_990, {3e-4})
