"""The scan for the onset of a fall.

The printed figures (P(no change) = 3.6e-9 and last known good 14000 for 6 points after step 14000; .285 and a
provisional 13000 for half of that) do not state their series. Of the natural choices searched (noise-free log-step
trends, binomial errors of known benchmarks), y = .2 + .07 ln(step/1000) with n = 1172 questions (ARC challenge) and
SE = sqrt(p(1-p)/n) reproduces all four to the printed digits.
"""

import math

import numpy as np
import pytest

from registry.recovery.onset import Onset, cusum, find_onset

STEPS = list(range(1000, 21000, 1000))


TREND = 0.2 + 0.07 * np.log(np.array(STEPS) / 1000)


def scan(values: np.ndarray, seed: int | None = None) -> Onset:
    errors = np.sqrt(values * (1 - values) / 1172)
    noise = 0 if seed is None else np.random.default_rng(seed).standard_normal(20) * errors
    return find_onset(STEPS, list(values + noise), list(errors))


def fallen(drop: float, after: int = 14000) -> np.ndarray:
    return TREND - drop * (np.array(STEPS) > after)


def test_six_points_after_14000() -> None:
    found = scan(fallen(0.06))
    assert found.p_no_change == pytest.approx(3.6e-9, abs=0.05e-9)
    assert found.is_established
    assert found.last_known_good == 14000
    assert (found.after_step, found.by_step) == (14000, 15000)
    assert found.drop == pytest.approx(0.06)
    assert "Fell" in found.sentence


def test_half_the_drop_is_not_established() -> None:
    found = scan(fallen(0.03))
    assert found.p_no_change == pytest.approx(0.285, abs=0.0005)
    assert not found.is_established
    assert found.last_known_good == 13000
    assert "not established" in found.sentence
    assert "provisional" in found.sentence
    assert (found.drop, found.after_step, found.shape) == (None, None, "none")


def test_a_rising_curve_without_a_fall_stays_good_to_its_end() -> None:
    found = scan(TREND)
    assert found.p_no_change > 0.5
    assert not found.is_established
    assert found.p_bad == tuple(sorted(found.p_bad))


def test_a_large_drop_does_not_overflow() -> None:
    errors = [1e-4] * 20
    found = find_onset(STEPS, list(fallen(0.25)), errors)
    assert found.p_no_change == 0.0
    assert found.last_known_good == 14000
    rising = find_onset(STEPS, list(fallen(-0.25)), errors)
    assert math.isfinite(rising.p_no_change)
    assert all(math.isfinite(each) for each in rising.p_bad)


def test_the_scan_agrees_with_summing_over_a_fine_grid() -> None:
    """The closed form of the integral over delta, against 3000 steps of it and a full least-squares fit each."""
    values = fallen(0.03)
    errors = np.sqrt(values * (1 - values) / 1172)
    design = np.column_stack((np.ones(20), np.log(STEPS))) / errors[:, None]

    def chi(y: np.ndarray) -> float:
        fit = np.linalg.lstsq(design, y / errors, rcond=None)[0]
        return float(((y / errors - design @ fit) ** 2).sum())

    deltas = (np.arange(300) + 0.5) / 1000
    gaps = [np.mean([math.exp(-chi(values + d * (np.arange(20) > k)) / 2) for d in deltas]) for k in range(19)]
    none = math.exp(-chi(values) / 2)
    assert scan(values).p_no_change == pytest.approx(none / (none + float(np.mean(gaps))), rel=1e-3)


def test_unequal_spacing_and_errors_are_taken() -> None:
    steps = [0, 128, 256, 512, 600, 700, 1000, 1100, 1300, 2000, 3000, 3100]
    values = [0.25, 0.25, 0.26, 0.25, 0.26, 0.25, 0.26, 0.27, 0.26, 0.15, 0.14, 0.15]
    found = find_onset(steps, values, [0.012] * 6 + [0.009] * 6)
    assert found.is_established
    assert found.last_known_good == 1300
    assert found.p_bad[0] == 0.0


PYTHIA_STEPS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000, 3000, *range(13000, 144000, 10000)]
# lambada_openai accuracy of Pythia 1.4B, generation v1, to four digits: flat at 0, a climb, saturation, never a fall.
LAMBADA = [
    *([0.0] * 11),
    *(0.0673, 0.3243, 0.4696, 0.5152, 0.5354, 0.5612, 0.5603, 0.5837, 0.5905, 0.5909, 0.5919, 0.6016, 0.6134),
    *(0.6125, 0.6119, 0.6161),
]


def test_a_learning_curve_that_saturates_has_not_fallen() -> None:
    errors = [max(0.0005, math.sqrt(p * (1 - p) / 5152)) for p in LAMBADA]
    found = find_onset(PYTHIA_STEPS, LAMBADA, errors)
    assert not found.is_established


def test_points_that_scatter_more_than_their_errors_prove_nothing() -> None:
    rng = np.random.default_rng(8)
    scattered = TREND + rng.standard_normal(20) * 0.05
    honest, claimed = (find_onset(STEPS, list(scattered), [error] * 20) for error in (0.05, 0.005))
    assert not honest.is_established
    assert not claimed.is_established


def test_last_known_good_is_safe_where_the_best_score_is_not() -> None:
    """Five points after a random gap: 99.8 % against 57 % published; 400 seeded series here."""
    rng = np.random.default_rng(11)
    safe = best = 0
    for seed in range(400):
        after = int(rng.choice(STEPS[4:16]))
        values = fallen(0.05, after)
        errors = np.sqrt(values * (1 - values) / 1172)
        noisy = values + np.random.default_rng(seed).standard_normal(20) * errors
        good = find_onset(STEPS, list(noisy), list(errors)).last_known_good
        safe += good is not None and good <= after
        best += STEPS[int(np.argmax(noisy))] <= after
    assert safe / 400 >= 0.985
    assert best / 400 <= 0.75


def shapes(values: np.ndarray, count: int = 300) -> dict[str, float]:
    found = [scan(values, seed).shape for seed in range(count)]
    return {shape: found.count(shape) / count for shape in ("step", "gradual", "unclear", "none")}


def test_eight_points_over_eight_checkpoints_are_mostly_called_gradual() -> None:
    """52 % gradual, 47 % unclear published; the place of the slope is not stated: here step 10000 to 18000."""
    found = shapes(TREND - 0.08 * np.clip((np.array(STEPS) - 10000) / 8000, 0, 1))
    assert found["gradual"] == pytest.approx(0.52, abs=0.08)
    assert found["unclear"] == pytest.approx(0.47, abs=0.08)


def test_a_step_of_five_points_is_hardly_ever_called_gradual() -> None:
    """77 % step, never gradual published; the place of the step is not stated: here after 12000."""
    found = shapes(fallen(0.05, 12000))
    assert found["step"] == pytest.approx(0.77, abs=0.08)
    assert found["gradual"] <= 0.01


def test_a_gradual_fall_gives_a_range() -> None:
    found = scan(TREND - 0.15 * np.clip((np.array(STEPS) - 10000) / 10000, 0, 1))
    assert found.shape == "gradual"
    assert found.after_step is not None
    assert found.by_step is not None
    assert found.by_step - found.after_step > 1000
    assert "gradually" in found.sentence


def test_three_points_establish_nothing() -> None:
    found = find_onset([1, 2, 3], [0.5, 0.5, 0.1], [0.01] * 3)
    assert not found.is_established
    assert found.last_known_good is None
    assert "4 are needed" in found.sentence


@pytest.mark.parametrize(
    ("steps", "values", "errors"),
    [
        ([1, 2, 2, 4], [0.1] * 4, [0.1] * 4),
        ([1, 2, 3, 4], [0.1, 0.2, math.nan, 0.1], [0.1] * 4),
        ([1, 2, 3, 4], [0.1] * 4, [0.1, 0.1, 0.0, 0.1]),
        ([1, 2, 3, 4], [0.1] * 3, [0.1] * 4),
    ],
)
def test_a_series_that_cannot_be_scanned_is_refused(steps: list[int], values: list[float], errors: list[float]) -> None:
    with pytest.raises(ValueError, match=r"must"):
        find_onset(steps, values, errors)


def test_cusum_sees_two_sigma_in_about_four_points() -> None:
    rng = np.random.default_rng(5)
    delays = [cusum(row) for row in rng.standard_normal((2000, 200)) - 2.0]
    # h = 5 exceeded by drifts of 1.5 a point; the published 4.1 counts from the change
    assert np.mean([index + 1 for index in delays if index is not None]) == pytest.approx(4.1, abs=0.2)


def test_cusum_alarms_falsely_about_once_in_932_points() -> None:
    rng = np.random.default_rng(6)
    delays = [cusum(row) for row in rng.standard_normal((400, 8000))]
    assert np.mean([8000 if index is None else index + 1 for index in delays]) == pytest.approx(932, rel=0.15)


def test_cusum_stays_quiet_on_gains() -> None:
    assert cusum([3.0] * 100) is None


def test_the_fall_among_ten_thousand_points_is_found() -> None:
    steps = list(range(100, 1_000_100, 100))
    values = 0.2 + 0.05 * np.log(steps) / 10 - 0.02 * (np.array(steps) > 700_000)
    noisy = values + np.random.default_rng(3).standard_normal(10_000) * 0.01
    found = find_onset(steps, list(noisy), [0.01] * 10_000)
    assert found.after_step == pytest.approx(700_000, abs=1000)
    assert found.shape == "step"


def test_five_points_leave_a_safe_last_known_good_in_99_of_100_series() -> None:
    """Over 1,000 series: the change after 5,000 to 16,000 steps, with the errors of 1,172 questions."""
    safe = 0
    for seed in range(1000):
        after = STEPS[4 + seed % 12]
        good = scan(fallen(0.05, after), seed).last_known_good
        safe += good is not None and good <= after
    assert safe / 1000 >= 0.99


@pytest.mark.parametrize("level", [TREND, np.full(20, 0.4), 0.45 - 0.2 / np.sqrt(np.arange(1, 21))])
def test_a_fall_is_claimed_falsely_in_at_most_one_of_twenty_series(level: np.ndarray) -> None:
    """Curves that rise, that are level, and that saturate."""
    assert sum(scan(level, seed).is_established for seed in range(500)) / 500 <= 0.05


def test_one_odd_score_among_thirty_does_not_send_the_run_far_back() -> None:
    """Five errors too low at step 16000: the median last known good is 15000 unless such a score is left out."""
    steps, errors = list(range(1000, 31000, 1000)), [0.012] * 30
    found = []
    for seed in range(200):
        values = 0.45 + np.random.default_rng(seed).standard_normal(30) * 0.012
        values[15] -= 0.06
        found.append(find_onset(steps, list(values), errors).last_known_good or 0)
    assert np.median(found) >= 20000


@pytest.mark.parametrize("last", [1, 2, 3])
def test_a_drop_of_the_newest_scores_is_not_taken_for_scores_that_stand_alone(last: int) -> None:
    found = [scan(fallen(0.05, STEPS[-1 - last]), seed) for seed in range(200)]
    assert sum(STEPS[-last] in each.alone for each in found) <= 2
    assert sum((each.last_known_good or 0) <= STEPS[-1 - last] for each in found) / 200 >= 0.98
