"""How long it takes to have a checkpoint running again, by where its copy lies. Every rate here is assumed.

T = detect, decide and schedule + thaw + S k / min(source, readers x reader, destination) + verify + load. The transfer
from shared storage is 4 % of it for 100 GB: noticing and scheduling dominate, and so does the age of the checkpoint.
"""

from dataclasses import dataclass

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
class RestoreTime:
    """Seconds: the expected time, and the time that 95 % of restores stay below."""

    expected: float
    p95: float


def restore_time(
    size_bytes: int | None,
    tier: Tier,
    *,
    readers: int = READERS,
    full_reads: int = 1,
    thaw_seconds: float = 0.0,
) -> RestoreTime | None:
    """None where the size is unknown: then so is the time. `full_reads`: replicas that each read the whole copy."""
    if size_bytes is None:
        return None
    rate = min(SOURCE_RATE[tier], readers * READER_RATE[tier])
    moved = size_bytes * full_reads / rate + size_bytes / VERIFY_RATE
    still = FIXED_SECONDS + LOAD_SECONDS + thaw_seconds
    return RestoreTime(still + moved, still + SLOW_IO * moved)
