"""The alarm of a standing watch: how often it is wrong, and how soon it is right."""

import numpy as np
import pytest

from registry.watches.alarm import find_alarms, one_move

ERROR = 0.0145


def noisy(level: "np.ndarray", seed: int) -> list[float]:
    values = level + np.random.default_rng(seed).standard_normal(len(level)) * ERROR
    return [float(each) for each in values]


def alarmed(level: "np.ndarray", count: int = 1000) -> float:
    return sum(bool(find_alarms(noisy(level, seed), [ERROR] * len(level))) for seed in range(count)) / count


@pytest.mark.parametrize("size", [20, 100])
def test_a_level_curve_raises_a_false_alarm_in_at_most_one_of_twenty(size: int) -> None:
    assert alarmed(np.full(size, 0.5)) <= 0.05


def test_a_curve_that_rises_and_flattens_raises_none() -> None:
    assert alarmed(0.2 + 0.07 * np.log(np.arange(1, 101))) <= 0.01


def test_eight_points_are_seen_at_once_and_five_mostly() -> None:
    rising = 0.2 + 0.07 * np.log(np.arange(1, 41))
    for drop, least, most_scores in ((0.08, 0.99, 2.5), (0.05, 0.7, 4.5)):
        level = rising - drop * (np.arange(40) >= 25)
        found = [find_alarms(noisy(level, seed), [ERROR] * 40) for seed in range(400)]
        late = [alarms[0].at - 24 for alarms in found if alarms and alarms[0].at >= 25]
        assert len(late) / 400 >= least
        assert np.mean(late) <= most_scores


def test_one_fall_is_one_alarm_and_the_next_fall_another() -> None:
    values = [0.6] * 10 + [0.5] * 10 + [0.4] * 10
    found = find_alarms(values, [0.01] * 30)
    assert [(each.good, each.at) for each in found] == [(9, 10), (19, 20)]
    assert found[0].level == pytest.approx(0.6)
    assert found[0].fall == pytest.approx(0.1)


def test_gains_raise_nothing() -> None:
    assert find_alarms([0.1 * place for place in range(50)], [0.001] * 50) == []


@pytest.mark.parametrize("values", [[], [0.5], [0.5, 0.1], [0.9, 0.5, 0.1]])
def test_a_run_needs_three_scores_to_compare_with(values: list[float]) -> None:
    assert find_alarms(values, [0.01] * len(values)) == []


def test_an_alias_needs_one_and_a_clear_fall_is_enough() -> None:
    (alarm,) = one_move([0.60, 0.55], [0.009, 0.009])
    assert (alarm.good, alarm.at) == (0, 1)
    assert one_move([0.60, 0.57], [0.009, 0.009]) == []


def test_unequal_errors_are_weighed() -> None:
    loud = find_alarms([0.6, 0.6, 0.6, 0.5], [0.01, 0.01, 0.01, 0.1])
    sure = find_alarms([0.6, 0.6, 0.6, 0.5], [0.01] * 4)
    assert (loud, len(sure)) == ([], 1)


def test_as_many_errors_as_values_are_needed() -> None:
    with pytest.raises(ValueError, match="one entry per score"):
        find_alarms([0.5], [])
