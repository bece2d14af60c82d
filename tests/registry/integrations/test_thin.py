"""Fewer points, nothing lost that a plot would show."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from registry.integrations.thin import thin


def test_a_short_curve_stays_as_it_is() -> None:
    assert thin([1, 2, 3], [1.0, math.nan, 3.0], ()) == ([1, 2, 3], thin([1, 2, 3], [1.0, math.nan, 3.0], ())[1])
    assert thin([], [], (5,)) == ([], [])


def test_spikes_ends_checkpoints_and_what_is_not_finite_stay() -> None:
    steps = list(range(100_000))
    values = [1.0] * len(steps)
    values[50_001], values[70_003], values[90_007] = 99.0, math.nan, -math.inf
    kept, found = thin(steps, values, {12_345, 999_999})
    assert len(kept) <= 2_600
    assert {0, 99_999, 50_001, 70_003, 90_007, 12_345} <= set(kept)
    assert found[kept.index(50_001)] == 99.0
    assert kept == sorted(kept)


def test_a_curve_that_grew_keeps_the_points_that_it_had_within_a_width() -> None:
    steps = list(range(60_000))
    values = [math.sin(step / 50) for step in steps]
    before = set(thin(steps[:50_000], values[:50_000], ())[0]) - {49_999}
    after = set(thin(steps, values, ())[0])
    assert before <= after


@settings(max_examples=60)
@given(st.lists(st.floats(), min_size=1, max_size=300), st.integers(1, 1000), st.integers(8, 40))
def test_every_point_that_is_kept_is_one_of_the_curve(values: list[float], gap: int, most: int) -> None:
    steps = [gap * at for at in range(len(values))]
    kept, found = thin(steps, values, {steps[-1]}, most=most)
    assert set(kept) <= set(steps)
    assert steps[0] in kept
    assert steps[-1] in kept
    for step, value in zip(kept, found, strict=True):
        original = values[step // gap]
        assert value == original or (value != value and original != original)
