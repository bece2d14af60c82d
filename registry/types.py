"""Enums and values that several rooms share."""

from enum import StrEnum
from typing import Final

# A number as JSON cannot write it: stored as a marker beside a null, never ranked.
NON_FINITE: Final = ("NaN", "Infinity", "-Infinity")
INT64_MAX: Final = 2**63 - 1
MAX_ATTEMPT: Final = 2**31 - 1


class Kind(StrEnum):
    """What a checkpoint was saved for; the second part of a step's identity, in this order."""

    LIGHT = "light"
    ARCHIVE = "archive"


class CheckpointState(StrEnum):
    PENDING = "pending"
    COMMITTED = "committed"
    DELETED = "deleted"


class PieceName(StrEnum):
    """The four things that resuming needs. `optimizer` includes scheduler, master weights and scaler."""

    WEIGHTS = "weights"
    OPTIMIZER = "optimizer"
    DATA_POSITION = "data_position"
    RANDOM_STATE = "random_state"


class Presence(StrEnum):
    PRESENT = "present"
    ABSENT = "absent"
    UNKNOWN = "unknown"


class Resumability(StrEnum):
    EXACT = "exact"
    RESUMABLE = "resumable"
    WEIGHTS_ONLY = "weights-only"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


class Tier(StrEnum):
    LOCAL = "local"
    SHARED = "shared"
    OBJECT = "object"


class Relation(StrEnum):
    """How a checkpoint came from its parent."""

    RESUMED = "resumed_from"
    FINE_TUNED = "fine_tuned_from"
    MERGED = "merged_from"
    RESHARDED = "resharded_from"
    CONVERTED = "converted_from"
    QUANTISED = "quantised_from"
    DISTILLED = "distilled_from"


# Scores follow these edges both ways: the weights are the same values in another arrangement.
LOSSLESS: Final = (Relation.RESHARDED, Relation.CONVERTED)


class Direction(StrEnum):
    HIGHER = "higher"
    LOWER = "lower"
    TARGET = "target"


class LrPhase(StrEnum):
    """Where in the learning rate's course a checkpoint was saved, by the rates of its run's checkpoints."""

    WARM_UP = "warm-up"
    STABLE = "stable"
    DECAY = "decay"


class Scope(StrEnum):
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"
