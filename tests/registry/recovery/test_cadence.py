"""How often to save, and how long runs run: figures of the published methods and of one large training."""

import math

import pytest

from registry.recovery.cadence import (
    daly,
    exact_interval,
    lost_per_failure,
    overhead,
    overhead_first_order,
    two_tiers,
    young,
)
from registry.recovery.reliability import hours_from_monthly_rate, mtbf

LARGE = 60 * 54 * 24 / 419  # minutes between the 419 interruptions of 54 days on 16,384 GPUs
LEDGER = 60 * 720 / 5  # minutes: 5 interruptions in 30 days


@pytest.mark.parametrize(("between", "interval"), [(1440, 116.69), (360, 56.713), (15, 9.141)])
def test_the_figures_of_dalys_paper(between: float, interval: float) -> None:
    assert daly(5, between) == pytest.approx(interval, abs=0.005)


def test_dear_saves_are_as_far_apart_as_failures() -> None:
    assert daly(30, 15) == 15
    assert daly(29.999, 15) == pytest.approx(15, rel=0.15)


def test_a_record_of_54_days_with_419_interruptions() -> None:
    found = mtbf(54 * 24, 419)
    assert (found.hours, found.low, found.high) == pytest.approx((3.0931, 2.8106, 3.4120), abs=5e-5)
    assert found.of_devices(16_384) == pytest.approx(50_677, abs=1)
    assert (found.of_devices(16_384) or 0) / 64 == pytest.approx(791.8, abs=0.05)


def test_a_record_of_5_interruptions_is_wide() -> None:
    found = mtbf(720, 5)
    assert (found.hours, found.low, found.high) == pytest.approx((144.0, 61.7, 443.5), abs=0.05)


def test_without_a_failure_there_is_a_lower_bound_only() -> None:
    found = mtbf(500, 0)
    assert (found.hours, found.high, found.of_devices(8)) == (None, None, None)
    assert found.low == pytest.approx(166.904, abs=5e-4)


def test_one_percent_of_2000_devices_a_month() -> None:
    assert hours_from_monthly_rate(0.01, 2_000) == pytest.approx(36.5, abs=0.05)


def test_saves_of_half_a_minute_in_a_large_training() -> None:
    interval = daly(0.5, LARGE)
    assert (young(0.5, LARGE), interval) == pytest.approx((13.62, 13.29), abs=0.005)
    assert overhead(interval, 0.5, LARGE, 10) == pytest.approx(0.137, abs=5e-4)
    assert overhead(60, 0.5, LARGE, 10) == pytest.approx(0.258, abs=5e-4)
    restarting = 10 / LARGE
    assert restarting == pytest.approx(0.054, abs=5e-4)
    quick = daly(0.05, LARGE)
    assert quick == pytest.approx(4.27, abs=0.005)
    assert overhead(quick, 0.05, LARGE, 10) == pytest.approx(0.080, abs=5e-4)


def test_saves_of_50_seconds_with_five_interruptions_a_month() -> None:
    interval = daly(50 / 60, LEDGER)
    assert (young(50 / 60, LEDGER), interval) == pytest.approx((120.0, 119.4), abs=0.05)
    assert overhead_first_order(interval, 50 / 60, LEDGER, 10) == pytest.approx(0.0150, abs=5e-5)


@pytest.mark.parametrize("between", [15, 360, 8640])
def test_dalys_interval_is_near_the_exact_one_which_is_the_best(between: float) -> None:
    best = exact_interval(0.5, between)
    assert daly(0.5, between) == pytest.approx(best, rel=0.01)
    least = overhead(best, 0.5, between)
    assert all(overhead(best * change, 0.5, between) > least for change in (0.9, 1.1))


def test_two_tiers_cost_less_than_the_archive_alone() -> None:
    found = two_tiers(4.17 / 60, 50 / 60, LEDGER, 0.1)
    assert (found.light, found.archive) == pytest.approx((36.5, 379.5), abs=0.06)
    assert found.light_per_archive == 10
    assert found.overhead == pytest.approx(0.0082, abs=5e-5)
    alone = math.sqrt(2 * (50 / 60) / LEDGER)
    assert alone == pytest.approx(0.0139, abs=5e-5)


def test_a_save_in_the_background_protects_once_it_has_ended() -> None:
    interval = young(2 / 60, LEDGER)
    assert interval == pytest.approx(24.0, abs=0.005)
    assert lost_per_failure(interval, 5) == pytest.approx(17.0, abs=0.005)
    with pytest.raises(ValueError, match="before the last one has ended"):
        lost_per_failure(4, 5)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: mtbf(0, 3),
        lambda: mtbf(math.nan, 3),
        lambda: mtbf(10, -1),
        lambda: daly(0, 10),
        lambda: daly(1, math.inf),
        lambda: two_tiers(1, 2, 10, 1.0),
        lambda: hours_from_monthly_rate(0.0, 8),
    ],
)
def test_what_is_no_time_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        wrong()  # type: ignore[operator]
