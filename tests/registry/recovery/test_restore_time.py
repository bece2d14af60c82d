"""100 GB from each tier."""

import numpy as np
import pytest

from registry.recovery.best_copies import TIERS, restore_seconds
from registry.recovery.ranking import p_ok
from registry.recovery.restore_time import Measured, needed_rate, restore_time, shown_reliability
from registry.types import Tier

GB = 10**9


@pytest.mark.parametrize(
    ("tier", "other", "minutes"),
    [
        (Tier.LOCAL, {}, 8.51),
        (Tier.SHARED, {}, 8.77),
        (Tier.OBJECT, {}, 9.27),
        (Tier.OBJECT, {"readers": 64}, 8.54),
        (Tier.OBJECT, {"readers": 64, "thaw_seconds": 4 * 3600}, 248.54),
    ],
)
def test_minutes_of_100_gb(tier: Tier, other: dict[str, float], minutes: float) -> None:
    found = restore_time(100 * GB, tier, **other)  # type: ignore[arg-type]
    assert found is not None
    assert found.expected / 60 == pytest.approx(minutes, abs=0.005)
    assert found.p95 > found.expected


def test_an_unknown_size_has_no_time() -> None:
    assert restore_time(None, Tier.SHARED) is None


def test_times_of_whole_columns_are_those_of_one_copy() -> None:
    sizes = [0, 1, 12_345_678_901, 100 * GB, None]
    pairs = [(tier, size) for tier in range(len(TIERS)) for size in sizes]
    known = np.array([-1 if size is None else size for _, size in pairs])
    expected, slow = restore_seconds(np.array([tier for tier, _ in pairs]), known)
    for at, (tier, size) in enumerate(pairs):
        one = restore_time(size, TIERS[tier])
        if one is None:
            assert np.isnan(expected[at])
            assert np.isnan(slow[at])
        else:
            assert (expected[at], slow[at]) == (one.expected, one.p95)


def test_eight_full_reads_take_160_seconds_instead_of_20() -> None:
    once, eight = restore_time(100 * GB, Tier.SHARED), restore_time(100 * GB, Tier.SHARED, full_reads=8)
    assert once is not None
    assert eight is not None
    assert eight.expected - once.expected == pytest.approx(140)


def test_the_terms_add_up_and_the_transfer_is_a_small_part() -> None:
    found = restore_time(100 * GB, Tier.SHARED, convert_seconds=60)
    assert found is not None
    assert sum(found.terms.values()) == pytest.approx(found.expected)
    assert found.terms["verify_seconds"] == pytest.approx(6.25)
    plain = restore_time(100 * GB, Tier.SHARED)
    assert plain is not None
    assert plain.transfer / plain.expected == pytest.approx(0.038, abs=0.0005)


def test_a_shared_copy_of_55_minutes_ago_is_63_8_minutes_from_progress() -> None:
    found = restore_time(100 * GB, Tier.SHARED)
    assert found is not None
    assert found.expected / 60 + 55 == pytest.approx(63.8, abs=0.05)


def test_the_slowest_of_source_readers_and_destination_decides() -> None:
    found = restore_time(100 * GB, Tier.LOCAL, into_rate=2e9)
    assert found is not None
    assert found.transfer == pytest.approx(50)


def test_ten_minutes_need_1_07_gb_a_second() -> None:
    rate = needed_rate(100 * GB, 600)
    assert rate is not None
    assert rate / GB == pytest.approx(1.07, abs=0.005)
    assert needed_rate(100 * GB, 500) is None


def test_what_drills_measured_stands_before_what_is_assumed() -> None:
    found = restore_time(100 * GB, Tier.SHARED, measured=Measured(25, 50.0, 10.0, 40.0, 130.0), thaw_seconds=5)
    assert found is not None
    assert (found.expected, found.p95, found.drills) == (480 + 5 + 100, 480 + 5 + 130, 25)
    assert sum(found.terms.values()) == pytest.approx(found.expected)
    assert found.terms["load_seconds"] == 40
    assert restore_time(None, Tier.SHARED, measured=Measured(25, 1, 1, 1, 1)) is None


@pytest.mark.parametrize(("drills", "shown"), [(29, 0.90), (59, 0.95), (299, 0.99)])
def test_drills_without_a_failure_show_a_reliability(drills: int, shown: float) -> None:
    assert shown_reliability(drills) == pytest.approx(shown, abs=0.0025)
    assert shown_reliability(drills - 1) < shown <= shown_reliability(drills)


def test_a_failed_drill_shows_less_and_none_shows_nothing() -> None:
    assert shown_reliability(59, 1) < shown_reliability(59)
    assert shown_reliability(0) == 0


def test_drills_update_the_assumed_chance() -> None:
    assert p_ok("verified hash", 11, 1) == pytest.approx(0.9375)
