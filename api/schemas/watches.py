"""Shapes of standing watches and of what they found."""

from typing import Any, ClassVar, Literal, Self

from pydantic import model_validator

from api.schemas.common import Answer, CheckpointRef, Id, Patch, RunRef, Shape, Text, Time
from api.schemas.rollback import AliasName, WatchIn
from registry.watches.findings import FindingRow
from registry.watches.standing import WatchRow, WatchSpec


class StandingWatchIn(Shape):
    """What to watch: of a run, or of an alias ("project/name"), a benchmark or a capability; or a run's loss.

    Without `watch`, all capabilities together.
    """

    run_id: Id | None = None
    alias: AliasName | None = None
    kind: Literal["score", "loss"] = "score"
    watch: WatchIn | None = None
    note: Text | None = None

    @model_validator(mode="after")
    def _run_or_alias(self) -> Self:
        if (self.run_id is None) == (self.alias is None):
            raise ValueError('expected either run_id or alias, the latter as "project/name"')
        return self

    def to_spec(self) -> WatchSpec:
        alias = self.alias.partition("/")[2] if self.alias is not None else None
        what = self.watch or WatchIn.model_construct(benchmark=None, capability=None)
        return WatchSpec(self.kind, self.run_id, alias, what.benchmark, what.capability, self.note)


class WatchPatch(Patch):
    """`state` ended: it looks no more."""

    amends: ClassVar[type[Shape]] = StandingWatchIn

    state: Literal["ended"]


class WatchOut(Answer):
    """`warning`: why nothing can be found yet: no result and no benchmark table has the benchmark, or no score of it
    counts (not finite, or off its scale)."""

    id: Id
    project: str
    run: RunRef | None
    alias: str | None
    kind: str
    benchmark: str | None
    capability: str | None
    watched: str
    note: str | None
    state: str
    created_at: Time
    created_by: str
    ended_at: Time | None
    warning: str | None

    @classmethod
    def from_row(cls, row: WatchRow) -> Self:
        names = ("id", "project", "alias", "kind", "benchmark", "capability", "note", "created_at", "created_by")
        return cls.model_construct(
            run=None if row.run is None else RunRef.model_construct(id=row.run.id, name=row.run.name),
            watched=row.words,
            state="standing" if row.ended_at is None else "ended",
            ended_at=row.ended_at,
            warning=row.warning,
            **{name: getattr(row, name) for name in names},
        )


class WatchPage(Answer):
    items: list[WatchOut]
    next_cursor: str | None


class FindingPatch(Shape):
    """Acknowledge a finding, or open it again; `note` null takes the note away."""

    state: Literal["open", "acknowledged"] | None = None
    note: Text | None = None

    @model_validator(mode="after")
    def _no_null_state(self) -> Self:
        if "state" in self.model_fields_set and self.state is None:
            raise ValueError("expected open or acknowledged")
        return self

    def to_changes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class QuestionOut(Answer):
    """The rollback question that a finding opens: the page, and the body of POST /rollback."""

    page: str
    body: dict[str, Any]


class FindingOut(Answer):
    """What a watch found. `from_step`: the last good score, or the first high point of the loss.

    `detail` holds its figures, normalised, where larger is better. A withdrawn one has nothing that speaks for it any
    more: its scores were evaluated again, or its steps were left behind.
    """

    id: Id
    project: str
    watch_id: Id
    kind: str
    benchmark: str | None
    capability: str | None
    run: RunRef
    alias: str | None
    checkpoint: CheckpointRef | None
    state: str
    from_step: int
    to_step: int
    sentence: str
    detail: dict[str, Any]
    opened_at: Time
    changed_at: Time
    acknowledged_at: Time | None
    acknowledged_by: str | None
    note: str | None
    rollback: QuestionOut

    @classmethod
    def from_row(cls, row: FindingRow, page: str) -> Self:
        said = ("run", "checkpoint", "detail", "rollback")
        return cls.model_construct(
            run=RunRef.model_construct(id=row.run.id, name=row.run.name),
            checkpoint=None if row.checkpoint is None else CheckpointRef.from_row(row.checkpoint),
            detail=dict(row.detail),
            rollback=QuestionOut.model_construct(page=page, body=row.question),
            **{name: getattr(row, name) for name in cls.model_fields if name not in said},
        )


class FindingPage(Answer):
    items: list[FindingOut]
    next_cursor: str | None
