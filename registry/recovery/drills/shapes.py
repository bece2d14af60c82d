"""A drill as it is reported, and as it is kept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, NamedTuple

from registry.checkpoints.rows import CheckpointIdentity
from registry.snapshots import LayoutSpec

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_TRIED: Final = "not_tried"
TOLERANCE: Final = 3.0  # times the noise of the recorded curve


class Step(NamedTuple):
    """The loss of one training step."""

    step: int
    loss: float


@dataclass(frozen=True, slots=True)
class Checks:
    """What the host saw, each `passed`, `failed` or `not_tried`: whether every byte was read, held against recorded
    digests, whether the files are what is recorded, and whether the command ended well after its steps."""

    read: str = NOT_TRIED
    verify: str = NOT_TRIED
    files: str = NOT_TRIED
    run: str = NOT_TRIED


@dataclass(frozen=True, slots=True)
class NewDrill:
    """A report. `losses` are those of the drill's steps, `cold_losses` of a start without the checkpoint.

    `seconds` by stage (read, verify, convert, load, run). `exact` is the host's claim; None: it makes none.
    """

    key: str
    host: str
    started_at: datetime
    ended_at: datetime
    verdict: str
    replica_id: int | None = None
    layout: LayoutSpec | None = None
    software: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float | None] = field(default_factory=dict)
    bytes_read: int | None = None
    steps_run: int | None = None
    losses: Sequence[Step] = ()
    cold_losses: Sequence[Step] = ()
    tolerance: float = TOLERANCE
    checks: Checks = field(default_factory=Checks)
    reason: str = ""
    exact: bool | None = None


@dataclass(frozen=True, slots=True)
class DrillRow:
    """A drill as it is kept. `exact` None: unknown; `comparison` says in words what the two comparisons found."""

    id: int
    project_id: int
    checkpoint: CheckpointIdentity
    replica_id: int | None
    key: str
    host: str
    tier: str | None
    format: str | None
    layout: LayoutSpec | None
    software: Mapping[str, str]
    started_at: datetime
    ended_at: datetime
    seconds: Mapping[str, float | None]
    bytes_read: int | None
    steps_run: int
    losses: Sequence[Step]
    cold_losses: Sequence[Step]
    tolerance: float
    checks: Checks
    continuation: str
    cold_start: str
    verdict: str
    exact: bool | None
    reason: str
    comparison: str
    created_by: str
    created_at: datetime


def beyond(losses: Sequence[Step], step: int) -> list[Step]:
    """The losses of steps after the checkpoint."""
    return [each for each in losses if each.step > step]
