"""100 GB from each tier."""

import pytest

from registry.recovery.restore_time import restore_time
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


def test_eight_full_reads_take_160_seconds_instead_of_20() -> None:
    once, eight = restore_time(100 * GB, Tier.SHARED), restore_time(100 * GB, Tier.SHARED, full_reads=8)
    assert once is not None
    assert eight is not None
    assert eight.expected - once.expected == pytest.approx(140)
