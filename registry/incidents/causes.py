"""The causes that an incident can have, by name: a title for people, a family, and whether the stop was planned.

Whoever guesses a cause (cairn.causes, on the training host) uses these names. A newer client may send another one,
which is kept as it is.
"""

from dataclasses import dataclass
from typing import Final

UNKNOWN: Final = "unknown"
WANTED: Final = "user-interrupt"


@dataclass(frozen=True, slots=True)
class Cause:
    """`planned`: somebody wanted the stop, so it does not count against the hardware.

    `outside`: it strikes whatever checkpoint was loaded (memory is short for the job, not for what it reads), and never
    makes one suspect.
    """

    name: str
    title: str
    family: str
    planned: bool = False
    outside: bool = False


_ALL: Final = (
    Cause("power", "power", "host", outside=True),
    Cause("gpu-off-bus", "GPU fell off the bus", "gpu", outside=True),
    Cause("gpu-ecc", "GPU memory error (ECC)", "gpu", outside=True),
    Cause("gpu-xid", "GPU fault (Xid)", "gpu", outside=True),
    Cause("gpu-fault", "faulty GPU", "gpu", outside=True),
    Cause("gpu-memory", "GPU out of memory", "memory", outside=True),
    Cause("host-memory", "host out of memory", "memory", outside=True),
    Cause("host-fault", "faulty host", "host", outside=True),
    Cause("link-flap", "network link down", "network", outside=True),
    Cause("network", "network", "network", outside=True),
    Cause("nccl-timeout", "NCCL timeout", "network", outside=True),
    Cause("rendezvous", "workers could not meet", "network", outside=True),
    Cause("worker-lost", "a worker was lost", "host", outside=True),
    Cause("storage-io", "storage I/O error", "storage"),
    Cause("stale-handle", "stale file handle", "storage"),
    Cause("disk-full", "disk full", "storage", outside=True),
    Cause("corrupt-checkpoint", "checkpoint could not be loaded", "storage"),
    Cause("nan-loss", "loss became NaN", "training"),
    Cause("python-exception", "exception in the program", "software"),
    Cause("native-crash", "crash in native code", "software"),
    Cause("software", "software", "software"),
    Cause("configuration", "configuration", "software"),
    Cause("preemption", "preempted", "scheduler", outside=True),
    Cause("scheduler-limit", "time limit of the scheduler", "scheduler", planned=True, outside=True),
    Cause("scheduler", "scheduler", "scheduler", outside=True),
    Cause("maintenance", "maintenance", "scheduler", planned=True, outside=True),
    Cause(WANTED, "stopped by a person", "person", planned=True, outside=True),
    Cause("membership-change", "workers formed anew", "scheduler", outside=True),
    Cause("hang", "hang", "unknown", outside=True),
    Cause(UNKNOWN, "unknown cause", "unknown"),
)
CAUSES: Final = {cause.name: cause for cause in _ALL}


def cause_of(name: str) -> Cause:
    """What is known of a cause; one that this release does not know is called by its own name."""
    return CAUSES.get(name) or Cause(name, name.replace("-", " "), "other")


# What follows from another fault: where a second reporter of the same interruption knows better, its word counts.
CONSEQUENCES: Final = frozenset(
    {UNKNOWN, "nccl-timeout", "worker-lost", "hang", "rendezvous", "membership-change", "network", "python-exception"}
)


def is_better(new: str, old: str) -> bool:
    """Whether a cause says more than the one that is recorded."""
    if new in (UNKNOWN, old):
        return False
    return old == UNKNOWN or (old in CONSEQUENCES and new not in CONSEQUENCES)
