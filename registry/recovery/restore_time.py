"""How long it takes to have a checkpoint running again, by where its copy lies: measured by drills, else assumed.

T = detect, decide and schedule + thaw + S k / min(source, readers x reader, destination) + verify + convert + load.
The transfer from shared storage is 4 % of it for 100 GB: noticing and scheduling dominate, and so does the age of
the checkpoint. What is lost since it was saved (RPO) is replay, and no part of T.
"""

import math
from dataclasses import dataclass
from typing import Final

from registry.types import Tier

# [assumed] until drills have measured them. Seconds, and bytes per second.
FIXED_SECONDS = 480.0
LOAD_SECONDS = 20.0
VERIFY_RATE = 16e9
SOURCE_RATE = {Tier.LOCAL: 24e9, Tier.SHARED: 5e9, Tier.OBJECT: float("inf")}
READER_RATE = {Tier.LOCAL: float("inf"), Tier.SHARED: float("inf"), Tier.OBJECT: 0.25e9}
READERS = 8
SLOW_IO = 1.5  # the 95th percentile of the transfer, against its mean

ASSUMED = (
    "Restore times assume 8 min to notice, decide and schedule, 20 s to load, verification at 16 GB/s, and copies read "
    "at 24 GB/s from local disks, 5 GB/s from shared storage, 2 GB/s from an object store with 8 readers"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds that `drills` rehearsals took, in proportion to the bytes of a copy: the mean of each part, and the 95th
    percentile of their sum."""

    drills: int
    transfer: float
    verify: float
    load: float
    p95: float


@dataclass(frozen=True, slots=True)
class RestoreTime:
    """Seconds: the expected time, and the time that 95 % of restores stay below; then the parts it is made of.

    `drills`: how many rehearsals the parts but the fixed one were measured by; 0: they are assumed.
    """

    expected: float
    p95: float
    transfer: float = 0.0
    verify: float = 0.0
    thaw: float = 0.0
    convert: float = 0.0
    load: float = LOAD_SECONDS
    drills: int = 0

    @property
    def terms(self) -> dict[str, float]:
        """Seconds by name; they add up to `expected`."""
        return {
            "detect_decide_schedule_seconds": FIXED_SECONDS,
            "thaw_seconds": self.thaw,
            "transfer_seconds": self.transfer,
            "verify_seconds": self.verify,
            "convert_seconds": self.convert,
            "load_seconds": self.load,
        }


def restore_time(
    size_bytes: int | None,
    tier: Tier,
    *,
    readers: int = READERS,
    full_reads: int = 1,
    thaw_seconds: float = 0.0,
    convert_seconds: float = 0.0,
    into_rate: float = math.inf,
    measured: Measured | None = None,
) -> RestoreTime | None:
    """None where the size is unknown: then so is the time. `full_reads`: replicas that each read the whole copy.

    `into_rate`: bytes per second that the destination takes. `measured`: what drills took, in place of what is assumed.
    """
    if size_bytes is None:
        return None
    still = FIXED_SECONDS + thaw_seconds + convert_seconds
    if measured is not None:
        parts = (measured.transfer, measured.verify, thaw_seconds, convert_seconds, measured.load)
        expected = still + measured.transfer + measured.verify + measured.load
        return RestoreTime(expected, still + measured.p95, *parts, drills=measured.drills)
    rate = min(SOURCE_RATE[tier], readers * READER_RATE[tier], into_rate)
    transfer, verify = size_bytes * full_reads / rate, size_bytes / VERIFY_RATE
    loaded = still + LOAD_SECONDS
    p95 = loaded + SLOW_IO * (transfer + verify)
    return RestoreTime(loaded + transfer + verify, p95, transfer, verify, thaw_seconds, convert_seconds)


def needed_rate(size_bytes: int, within_seconds: float) -> float | None:
    """The bytes per second that a transfer needs for a restore in that time; None where nothing is fast enough."""
    left = within_seconds - FIXED_SECONDS - LOAD_SECONDS - size_bytes / VERIFY_RATE
    return size_bytes / left if left > 0 else None


CONFIDENCE: Final = 0.95


def shown_reliability(passed: int, failed: int = 0, confidence: float = CONFIDENCE) -> float:
    """The least reliability that so many drills show (Clopper-Pearson, one-sided); 59 without a failure: 95 %."""
    if not passed:
        return 0.0
    if not failed:
        return float((1 - confidence) ** (1 / passed))
    from scipy.special import betaincinv  # 20 MB and 0.3 s: only where a drill has failed

    return float(betaincinv(passed, failed + 1, 1 - confidence))
