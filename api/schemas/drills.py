"""Shapes of drills: what a host reports of a rehearsed restore, and what is kept of it."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from api.schemas.common import (
    Answer,
    CheckpointRef,
    Count,
    Finite,
    Id,
    LongText,
    Name,
    NonNegative,
    Number,
    Shape,
    Text,
    Time,
)
from api.schemas.common import Step as StepNumber
from api.schemas.parts import LayoutIn, LayoutOut
from registry.recovery.drills import Checks, DrillRow, NewDrill, Step
from registry.recovery.drills.shapes import TOLERANCE

Word = Literal["passed", "failed", "not_tried"]
MOST_LOSSES = 10_000


class SecondsIn(Shape):
    """Seconds by stage; a stage that was not tried, or not timed by itself, is left out."""

    read: NonNegative | None = None
    verify: NonNegative | None = None
    convert: NonNegative | None = None
    load: NonNegative | None = None
    run: NonNegative | None = None


class ChecksIn(Shape):
    """What the host saw. `read`: every byte; `verify`: against recorded digests; `files`: their format, step, pieces;
    `run`: the command ended well, after its steps."""

    read: Word = "not_tried"
    verify: Word = "not_tried"
    files: Word = "not_tried"
    run: Word = "not_tried"


class StepLossIn(Shape):
    step: StepNumber
    loss: Number


Losses = Annotated[list[StepLossIn | Number], Field(max_length=MOST_LOSSES)]


class DrillIn(Shape):
    """One rehearsal. `key` is the client's own; the same key again is the same drill.

    `losses` are of the steps after the checkpoint: `{step, loss}`, or plain numbers of the next steps in order.
    `cold_losses`: of a start without the checkpoint, from step 1. `layout` and `software` are those of the drill.
    """

    checkpoint_id: Id
    key: Name
    replica_id: Id | None = None
    host: Name
    layout: LayoutIn | None = None
    software: Annotated[dict[Name, Text], Field(max_length=1_000)] = Field(default_factory=dict)
    started_at: Time
    ended_at: Time
    seconds: SecondsIn = SecondsIn()
    bytes_read: Count | None = None
    steps_run: Count | None = None
    losses: Losses = Field(default_factory=list)
    cold_losses: Losses = Field(default_factory=list)
    tolerance: Annotated[Finite, Field(gt=0, le=1_000)] = TOLERANCE
    checks: ChecksIn = ChecksIn()
    verdict: Literal["passed", "failed"]
    reason: LongText = ""
    exact: bool | Literal["unknown"] | None = None

    @model_validator(mode="after")
    def _one_manner(self) -> Self:
        for losses in (self.losses, self.cold_losses):
            if len({isinstance(each, StepLossIn) for each in losses}) > 1:
                raise ValueError("give every loss with its step, or none")
        return self

    def to_new(self, step: int) -> NewDrill:
        """`step`: of the checkpoint, which plain losses follow on."""
        return NewDrill(
            key=self.key,
            host=self.host,
            started_at=self.started_at,
            ended_at=self.ended_at,
            verdict=self.verdict,
            replica_id=self.replica_id,
            layout=None if self.layout is None else self.layout.to_spec(),
            software=self.software,
            seconds=self.seconds.model_dump(),
            bytes_read=self.bytes_read,
            steps_run=self.steps_run,
            losses=_steps(self.losses, step),
            cold_losses=_steps(self.cold_losses, 0),
            tolerance=self.tolerance,
            checks=Checks(**self.checks.model_dump()),
            reason=self.reason,
            exact=self.exact if isinstance(self.exact, bool) else None,
        )


def _steps(losses: Sequence[StepLossIn | float], after: int) -> list[Step]:
    return [
        Step(each.step, each.loss) if isinstance(each, StepLossIn) else Step(after + place, each)
        for place, each in enumerate(losses, 1)
    ]


class StepLossOut(Answer):
    step: int
    loss: Number

    @classmethod
    def from_step(cls, row: Step) -> Self:
        return cls.model_construct(step=row.step, loss=row.loss)


class SecondsOut(Answer):
    """Null: not tried, or not timed by itself."""

    read: float | None
    verify: float | None
    convert: float | None
    load: float | None
    run: float | None


class ChecksOut(Answer):
    """Each `passed`, `failed` or `not_tried`. `continuation` (the losses against those recorded after the checkpoint)
    and `cold_start` (against a start without it) are the service's own comparisons; the others the host reported."""

    read: Word
    verify: Word
    files: Word
    run: Word
    continuation: Word
    cold_start: Word


class DrillItem(Answer):
    """`exact`: the losses equal the recorded ones, in the same layout and with the same software; null: unknown.

    `comparison`: in words, what the comparisons found and what stands against calling it exact.
    """

    id: Id
    checkpoint: CheckpointRef
    replica_id: Id | None
    key: str
    host: str
    tier: str | None
    format: str | None
    layout: LayoutOut | None
    software: dict[str, str]
    started_at: Time
    ended_at: Time
    seconds: SecondsOut
    bytes_read: int | None
    steps_run: int
    checks: ChecksOut
    verdict: Literal["passed", "failed"]
    exact: bool | None
    reason: str
    comparison: str
    created_by: str
    created_at: Time

    @classmethod
    def from_row(cls, row: DrillRow) -> Self:
        own = (
            *("id", "replica_id", "key", "host", "tier", "format", "started_at", "ended_at", "bytes_read"),
            *("steps_run", "verdict", "exact", "reason", "comparison", "created_by", "created_at"),
        )
        seconds: dict[str, Any] = dict(row.seconds)
        host = {name: getattr(row.checks, name) for name in ("read", "verify", "files", "run")}
        return cls.model_construct(
            **{name: getattr(row, name) for name in own},
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            layout=None if row.layout is None else LayoutOut.from_spec(row.layout),
            software=dict(row.software),
            seconds=SecondsOut.model_construct(**seconds),
            checks=ChecksOut.model_construct(**host, continuation=row.continuation, cold_start=row.cold_start),
        )


class DrillOut(DrillItem):
    """With the losses of its steps, and of the cold start beside it."""

    losses: list[StepLossOut]
    cold_losses: list[StepLossOut]
    tolerance: float

    @classmethod
    def from_row(cls, row: DrillRow) -> Self:
        item = DrillItem.from_row(row)
        return cls.model_construct(
            **{name: getattr(item, name) for name in DrillItem.model_fields},
            losses=[StepLossOut.from_step(each) for each in row.losses],
            cold_losses=[StepLossOut.from_step(each) for each in row.cold_losses],
            tolerance=row.tolerance,
        )


class DrillPage(Answer):
    items: list[DrillItem]
    next_cursor: str | None
