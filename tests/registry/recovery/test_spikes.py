"""Spikes of the loss: found where they are, not where they are not, and what undoes them."""

import math

import numpy as np
import pytest

from registry.recovery.remedy import remedy
from registry.recovery.spikes import Spike, find_spikes, newest_that_matters


def curve(count: int, seed: int = 1, noise: float = 0.02) -> list[float]:
    """A loss that falls like a training's, with the noise that its batches have."""
    steps = np.arange(1, count + 1)
    values = 2 + 4 * steps**-0.3 + np.random.default_rng(seed).standard_normal(count) * noise
    return [float(each) for each in values]


def spikes(values: list[float], first: int = 1) -> list[Spike]:
    return find_spikes(list(range(first, first + len(values))), values)


@pytest.mark.parametrize("seed", range(20))
def test_noise_around_a_falling_loss_is_no_spike(seed: int) -> None:
    assert spikes(curve(2000, seed)) == []


def test_a_loss_that_stays_up_is_one_spike_that_has_not_come_back() -> None:
    values = curve(500)
    values[299:] = [each + 1.5 for each in values[299:]]
    (found,) = spikes(values)
    assert (found.from_step, found.to_step, found.after_step) == (300, 500, 299)
    assert (found.shape, found.recovered) == ("sustained", False)
    assert found.level == pytest.approx(2 + 4 * 267**-0.3, abs=0.05)


def test_a_loss_that_comes_back_is_a_spike_with_an_end() -> None:
    values = curve(500)
    for place, rise in ((299, 0.8), (300, 2.0), (301, 0.02), (302, 0.6)):
        values[place] += rise
    (found,) = spikes(values)
    assert (found.from_step, found.to_step, found.points) == (300, 303, 4)
    assert (found.shape, found.recovered) == ("sustained", True)


def test_a_single_high_point_is_told_apart() -> None:
    values = curve(500)
    values[299] += 2
    (found,) = spikes(values)
    assert (found.shape, found.from_step, found.to_step) == ("single-step", 300, 300)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("place", [0, 5, 250, 499])
def test_what_is_not_finite_is_a_spike_wherever_it_stands(bad: float, place: int) -> None:
    values = curve(500)
    values[place] = bad
    found = spikes(values)
    assert [(each.shape, each.from_step) for each in found] == [("non-finite", place + 1)]
    assert math.isnan(found[0].peak)


def test_a_loss_that_is_nan_to_its_end_has_not_come_back() -> None:
    (found,) = spikes(curve(100) + [math.nan] * 50)
    assert (found.from_step, found.to_step, found.recovered) == (101, 150, False)
    assert spikes([math.nan] * 30)[0].after_step is None


def test_two_spikes_are_two_and_the_newest_that_was_more_than_a_point_matters() -> None:
    values = curve(900)
    for place in (200, 201, 202, 600, 601, 850):
        values[place] += 2
    found = spikes(values)
    assert [(each.from_step, each.shape) for each in found] == [
        (201, "sustained"),
        (601, "sustained"),
        (851, "single-step"),
    ]
    assert newest_that_matters(found) == found[1]
    assert newest_that_matters(found[2:]) == found[2]
    assert newest_that_matters([]) is None


@pytest.mark.parametrize("count", [0, 1, 2, 16])
def test_a_short_curve_says_nothing(count: int) -> None:
    assert spikes([2.0, 9.0] * (count // 2) + [2.0] * (count % 2)) == []


def test_as_many_values_as_steps_are_needed() -> None:
    with pytest.raises(ValueError, match="one entry per point"):
        find_spikes([1, 2], [1.0])


def test_a_level_curve_without_noise_does_not_alarm_at_a_hundredth() -> None:
    assert spikes([2.0] * 100 + [2.01, 2.02] + [2.0] * 20) == []
    assert len(spikes([2.0] * 100 + [2.5, 2.5] + [2.0] * 20)) == 1


# lm loss by iteration in the public log of BLOOM's training (tr11, Megatron-DeepSpeed).
LOGGED = {
    31214: 2.198845,
    31215: 2.220424,
    31216: 2.595213,
    31217: 2.241558,
    31218: 2.345279,
    31219: 5.098124,
    31220: 3.492029,
    31221: 3.213059,
    31222: 2.804948,
    31250: 2.215699,
    31251: 2.235667,
}


def test_the_spike_in_the_log_of_a_large_training_is_found() -> None:
    """The lines before it are not published: a level curve with the noise of those around it stands in for them."""
    before = range(31214 - 200, 31214)
    noise = np.random.default_rng(3).standard_normal(len(before)) * 0.02
    steps = [*before, *LOGGED]
    values = [*(2.21 + float(each) for each in noise), *LOGGED.values()]
    (found,) = find_spikes(steps, values)
    assert (found.from_step, found.to_step, found.shape) == (31216, 31222, "sustained")
    assert found.peak == 5.098124
    cure = remedy(found, list(range(30000, 31300, 60)))
    assert cure.rewind_to == 31080
    assert cure.skip == (31116, 31222)
    assert "rewind to step 31080 and skip the data of steps 31116 to 31222" in cure.sentence
