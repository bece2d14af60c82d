"""Figures of the published method, by hand and from the literature."""

import math

import numpy as np
import pytest

from registry.evals.significance import (
    Change,
    benjamini_hochberg,
    from_normal,
    minimum_detectable_paired,
    minimum_detectable_unpaired,
    paired_binary,
    paired_differences,
    unpaired,
    verdict,
)


def gsm8k_error(p: float) -> float:
    return math.sqrt(p * (1 - p) / 1318)


def test_unpaired_fall_of_gsm8k_from_60_to_55() -> None:
    change = unpaired(0.60, 0.55, gsm8k_error(0.60), gsm8k_error(0.55))
    assert change.stderr == pytest.approx(0.01923, abs=6e-6)
    assert change.z == pytest.approx(-2.600, abs=1e-3)
    assert change.p_drop == pytest.approx(0.00466, abs=1e-5)


def test_unpaired_fall_of_two_points_is_not_seen() -> None:
    change = unpaired(0.60, 0.58, gsm8k_error(0.60), gsm8k_error(0.58))
    assert change.p_drop == pytest.approx(0.148, abs=1e-3)


@pytest.mark.parametrize(
    ("b", "c", "d", "stderr", "z"),
    [(146, 80, -0.05004, 0.01132, -4.421), (66, 40, -0.01971, 0.00779, -2.531)],
)
def test_paired_samples_see_more(b: int, c: int, d: float, stderr: float, z: float) -> None:
    change = paired_binary(b, c, 1319)
    assert change.difference == pytest.approx(d, abs=5e-6)
    assert change.stderr == pytest.approx(stderr, abs=5e-6)
    assert change.z == pytest.approx(z, abs=5e-4)


def test_exact_p_of_66_against_40() -> None:
    change = paired_binary(66, 40, 1319)
    assert change.p_drop == pytest.approx(0.0074, abs=5e-5)
    by_hand = sum(math.comb(106, k) for k in range(66, 107)) / 2**106
    assert change.p_drop == pytest.approx(by_hand, rel=1e-9)
    assert paired_binary(40, 66, 1319).p_gain == pytest.approx(by_hand, rel=1e-9)


def test_no_discordant_sample_is_no_evidence() -> None:
    change = paired_binary(0, 0, 100)
    assert (change.p_drop, change.p_gain, change.difference) == (1.0, 1.0, 0.0)


def test_counts_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="shared samples"):
        paired_binary(60, 50, 100)


def test_paired_t_of_graded_samples() -> None:
    change = paired_differences([-0.5, -0.25, -0.5, 0.0, -0.25])
    assert change.difference == pytest.approx(-0.3)
    assert change.z == pytest.approx(-0.3 / (math.sqrt(0.04375) / math.sqrt(5)))
    assert change.p_drop == pytest.approx(0.016347, abs=1e-5)  # t = -3.207, 4 degrees of freedom


def test_benjamini_hochberg_rejects_three_where_bonferroni_rejects_one() -> None:
    p = [0.0003, 0.011, 0.013, 0.031, 0.04, 0.08, 0.20, 0.44, 0.52, 0.60]
    q = benjamini_hochberg(p)
    assert q == pytest.approx([0.003, 0.0433, 0.0433, 0.0775, 0.08, 0.1333, 0.2857, 0.55, 0.5778, 0.60], abs=5e-5)
    assert sum(each <= 0.05 for each in q) == 3
    assert sum(each * 10 <= 0.05 for each in p) == 1


def test_q_values_keep_the_order_they_were_given_in() -> None:
    assert benjamini_hochberg([0.6, 0.0003, 0.04]) == pytest.approx([0.6, 0.0009, 0.06])
    assert benjamini_hochberg([]) == []


@pytest.mark.parametrize(
    ("p", "n", "discordant", "unpaired_points", "paired_points"),
    [
        (0.6, 1319, 0.15, 4.74, 2.65),  # gsm8k
        (0.6, 14042, 0.15, 1.45, 0.81),  # mmlu
        (0.5, 164, 0.15, 13.7, 7.5),  # humaneval
        (0.3, 30, 0.15, 29.4, 17.6),  # aime
    ],
)
def test_least_change_that_would_be_seen(
    p: float, n: int, discordant: float, unpaired_points: float, paired_points: float
) -> None:
    assert 100 * minimum_detectable_unpaired(p, n) == pytest.approx(unpaired_points, abs=0.06)
    assert 100 * minimum_detectable_paired(discordant, n) == pytest.approx(paired_points, abs=0.06)
    assert from_normal(0.0, 1.0, "").detectable == pytest.approx(2.48647, abs=1e-5)


def test_two_tenths_on_mmlu_are_inconclusive_even_with_14042_questions() -> None:
    errors = [math.sqrt(p * (1 - p) / 14041) for p in (0.600, 0.598)]
    raw = unpaired(0.600, 0.598, *errors)
    assert raw.difference - 1.6449 * raw.stderr == pytest.approx(-0.0116, abs=5e-5)
    assert raw.difference + 1.6449 * raw.stderr == pytest.approx(0.0076, abs=5e-5)
    normalised = unpaired(0.35 / 0.75, 0.348 / 0.75, errors[0] / 0.75, errors[1] / 0.75)
    assert verdict(normalised, 0.4, 0.6)[0] == "inconclusive"


def change(difference: float, stderr: float) -> Change:
    return from_normal(difference, stderr, "unpaired z")


@pytest.mark.parametrize(
    ("difference", "stderr", "q_drop", "q_gain", "expected"),
    [
        (-0.05, 0.010, 0.001, 1.0, "regressed"),
        (-0.05, 0.010, 0.20, 1.0, "suspected"),  # the correction took it back
        (-0.008, 0.003, 0.01, 1.0, "suspected"),  # sure, but less than a point
        (-0.002, 0.003, 0.5, 1.0, "unchanged"),
        (0.002, 0.003, 1.0, 0.5, "unchanged"),
        (-0.01, 0.020, 0.6, 1.0, "inconclusive"),
        (0.05, 0.010, 1.0, 0.001, "improved"),
        (0.05, 0.010, 1.0, 0.20, "inconclusive"),
        (0.0, 0.0, 1.0, 1.0, "unchanged"),
    ],
)
def test_verdicts(difference: float, stderr: float, q_drop: float, q_gain: float, expected: str) -> None:
    assert verdict(change(difference, stderr), q_drop, q_gain)[0] == expected


def test_an_assumed_error_never_carries_more_than_a_suspicion() -> None:
    found, why = verdict(change(-0.5, 0.05), 1e-9, 1.0, assumed=True)
    assert found == "suspected"
    assert "assumed" in why
    assert verdict(change(0.5, 0.05), 1.0, 1e-9, assumed=True)[0] == "inconclusive"


def test_without_points_nothing_is_called_unchanged() -> None:
    assert verdict(change(-0.0368, 0.001), 0.001, 1.0, margin=None)[0] == "regressed"
    assert verdict(change(0.0, 0.001), 1.0, 1.0, margin=None)[0] == "inconclusive"


def test_forty_uncorrected_comparisons_nearly_always_raise_a_false_alarm() -> None:
    rng = np.random.default_rng(1)
    p = np.array([[change(d, 1.0).p_drop for d in row] for row in rng.standard_normal((2000, 40))])
    alarms = (p <= 0.05).any(axis=1).mean()
    corrected = np.mean([min(benjamini_hochberg(list(row))) <= 0.05 for row in p])
    assert alarms == pytest.approx(0.87, abs=0.02)
    assert corrected <= 0.07


def test_capability_composites_first_catch_a_small_fall_of_four_benchmarks() -> None:
    """10 capabilities of 4 benchmarks, n = 1000, one falls by 3 points: 57 % against 19 % with one flat correction."""
    rng = np.random.default_rng(2)
    stderr = math.sqrt(2 * 0.24 / 1000)
    d = rng.normal(0, stderr, (1500, 10, 4))
    d[:, 0] -= 0.03
    composite = [[change(x, stderr / 2).p_drop for x in row] for row in d.mean(axis=2)]
    caught = np.mean([benjamini_hochberg(row)[0] <= 0.05 for row in composite])
    flat = [[change(x, stderr).p_drop for x in row] for row in d.reshape(1500, 40)]
    caught_flat = np.mean([min(benjamini_hochberg(row)[:4]) <= 0.05 for row in flat])
    assert caught == pytest.approx(0.57, abs=0.05)
    assert caught_flat == pytest.approx(0.19, abs=0.05)
