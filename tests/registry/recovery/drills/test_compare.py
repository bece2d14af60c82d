"""Losses of a drill against those of a training that went on, and against a cold start."""

import math
import random

import pytest

from registry.recovery.drills.compare import (
    Recorded,
    compare_cold,
    compare_continuation,
    equal_as_printed,
    noise_of,
)
from registry.recovery.drills.shapes import TOLERANCE, Step


def curve(noise: float = 0.02, seed: int = 7) -> list[float]:
    """The loss of steps 1 to 400: it falls with a trend, and each step is a batch of its own."""
    draw = random.Random(seed)
    return [10 * step**-0.3 + draw.gauss(0, noise) for step in range(1, 401)]


def recorded(values: list[float], step: int = 300) -> Recorded:
    after = {at: value for at, value in enumerate(values, 1) if at > step}
    return Recorded(after, values[step - 64 : step + 64], values[:10], "attempt 1")


def drilled(values: list[float], count: int = 10, step: int = 300, shift: float = 0.0) -> list[Step]:
    return [Step(step + at, values[step + at - 1] + shift) for at in range(1, count + 1)]


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (2.345678901234, 2.345678901234, True),
        (2.3457, 2.345678901234, True),
        (2.3458, 2.345678901234, False),
        (2.3, 2.345678901234, False),  # one digit after the point tells nothing
        (2.345678901234, 2.3456789, True),
        (2.3456789, 2.3456811, False),
        (math.nan, math.nan, True),
        (math.inf, 3.0, False),
        (0.0, 1e-9, False),
    ],
)
def test_losses_are_equal_up_to_how_they_were_printed(one: float, other: float, equal: bool) -> None:
    assert equal_as_printed(one, other) is equal
    assert equal_as_printed(other, one) is equal


def test_the_noise_leaves_the_trend_out() -> None:
    found, measured = noise_of(curve()[200:328])
    assert measured
    assert found == pytest.approx(0.02, rel=0.25)
    falling = [5 - 0.1 * at for at in range(50)]
    assert noise_of(falling)[0] < 0.001
    assert noise_of([2.0, 2.0, 2.0]) == (0.02, False)


def test_the_same_losses_are_a_continuation() -> None:
    values = curve()
    found = compare_continuation(drilled(values), recorded(values), TOLERANCE)
    assert (found.check, found.equal) == ("passed", True)
    assert "10 steps equal those of attempt 1" in found.words


def test_two_equal_losses_do_not_show_what_the_optimizer_did() -> None:
    values = curve()
    assert compare_continuation(drilled(values, 3), recorded(values), TOLERANCE).equal is True
    found = compare_continuation(drilled(values, 2), recorded(values), TOLERANCE)
    assert (found.check, found.equal) == ("passed", None)


def test_other_batches_of_the_same_training_are_near() -> None:
    """Of 200 drills over other data, almost none is called off."""
    values = curve()
    checks = [
        compare_continuation(drilled(curve(seed=100 + seed)), recorded(values), TOLERANCE).check for seed in range(200)
    ]
    assert checks.count("passed") >= 190


@pytest.mark.parametrize("shift", [0.05, -0.05, 0.5])
def test_losses_that_are_off_are_no_continuation(shift: float) -> None:
    values = curve()
    found = compare_continuation(drilled(values, shift=shift), recorded(values), TOLERANCE)
    assert (found.check, found.equal) == ("failed", False)
    assert f"{abs(shift):g} {'lower' if shift < 0 else 'higher'} on average" in found.words


def test_a_wider_tolerance_lets_more_pass() -> None:
    values = curve()
    assert compare_continuation(drilled(values, shift=0.05), recorded(values), 10).check == "passed"


def test_losses_that_swing_around_the_right_mean_are_off() -> None:
    values = curve()
    swinging = [Step(at.step, at.loss + (0.3 if place % 2 else -0.3)) for place, at in enumerate(drilled(values))]
    assert compare_continuation(swinging, recorded(values), TOLERANCE).check == "failed"


def test_a_loss_that_is_not_finite_fails_even_where_nothing_is_recorded() -> None:
    nothing = Recorded({}, [], [])
    assert compare_continuation([Step(301, math.nan)], nothing, TOLERANCE).check == "failed"


def test_what_cannot_be_compared_is_not_tried() -> None:
    values = curve()
    assert compare_continuation([], recorded(values), TOLERANCE).check == "not_tried"
    assert compare_continuation([Step(301, 2.0)], Recorded({}, [], []), TOLERANCE).check == "not_tried"
    found = compare_continuation([Step(9000, 2.0)], recorded(values), TOLERANCE)
    assert (found.check, found.equal) == ("not_tried", None)


def test_losses_like_those_of_a_cold_start_tell_that_weights_were_not_loaded() -> None:
    values = curve()
    cold = [Step(300 + at, values[at]) for at in range(10)]
    found = compare_cold(cold, values[:10], recorded(values), TOLERANCE)
    assert found.check == "failed"
    assert "weights were not loaded" in found.words
    assert compare_cold(drilled(values), values[:10], recorded(values), TOLERANCE).check == "passed"


def test_a_cold_start_that_looks_like_the_checkpoint_tells_nothing() -> None:
    values = curve()
    assert compare_cold(drilled(values), values[295:300], recorded(values), TOLERANCE).check == "not_tried"
    assert compare_cold(drilled(values), [], recorded(values), TOLERANCE).check == "not_tried"
    assert compare_cold([], values[:10], recorded(values), TOLERANCE).check == "not_tried"
    assert compare_cold(drilled(values), values[:10], Recorded({}, [], []), TOLERANCE).check == "not_tried"


def test_the_loss_at_the_checkpoint_stands_in_where_nothing_follows_it() -> None:
    values = curve()
    alone = Recorded({}, values[:300], values[:10], at=values[299])
    assert compare_cold(drilled(values), values[:10], alone, TOLERANCE).check == "passed"
    assert compare_cold([Step(301, values[0])], values[:10], alone, TOLERANCE).check == "failed"
