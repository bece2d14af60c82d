"""Shapes of projects, runs, attempts, curves."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from api.answers import AsSent
from api.schemas.common import (
    Answer,
    AttemptNumber,
    FreeObject,
    Id,
    LongText,
    Name,
    Number,
    Patch,
    Positive,
    Shape,
    ShortName,
    Step,
    Text,
    Time,
)
from api.schemas.parts import LayoutIn, Tags
from registry.attempts import AttemptRow, AttemptSpec
from registry.incidents.receipts import UNCONFIRMED, Confirmation
from registry.overview.attempts import Progress
from registry.projects import ProjectRow
from registry.resume_points import ResumePoint
from registry.runs import RunRow, RunSpec, TrackerSpec
from registry.series import Points
from registry.types import PieceName

AttemptState = Literal["running", "finished", "failed", "lost", "stalled", "stopped"]


class ProjectIn(Shape):
    name: ShortName


class ProjectOut(Answer):
    id: Id
    name: str

    @classmethod
    def from_row(cls, row: ProjectRow) -> Self:
        return cls.model_construct(id=row.id, name=row.name)


class TrackerIn(Shape):
    """Where the run is found in a tracker. `uri` may be left out for the tracker's own default."""

    kind: Literal["mlflow", "wandb"]
    run_id: Name
    uri: Text | None = None
    entity: Text | None = None
    project: Text | None = None

    def to_spec(self) -> TrackerSpec:
        return TrackerSpec(self.kind, self.run_id, self.uri or "", self.entity, self.project)


class TrackerOut(Answer):
    kind: str
    uri: str | None
    entity: str | None
    project: str | None
    run_id: str

    @classmethod
    def from_spec(cls, spec: TrackerSpec) -> Self:
        return cls.model_construct(
            kind=spec.kind, uri=spec.uri or None, entity=spec.entity, project=spec.project, run_id=spec.run_id
        )


class RunIn(Shape):
    project: ShortName
    name: Name
    kind: Text | None = None
    owner: Text | None = None
    team: Text | None = None
    model_family: Text | None = None
    parameter_count: Positive | None = None
    config: FreeObject | None = None
    tags: Tags = Field(default_factory=dict)
    trackers: Annotated[list[TrackerIn], Field(max_length=100)] = Field(default_factory=list)
    started_at: Time | None = None

    def to_spec(self) -> RunSpec:
        return RunSpec(
            name=self.name,
            kind=self.kind,
            owner=self.owner,
            team=self.team,
            model_family=self.model_family,
            parameter_count=self.parameter_count,
            config=self.config,
            tags=self.tags,
            trackers=[tracker.to_spec() for tracker in self.trackers],
            started_at=self.started_at,
        )


class RunItem(Answer):
    """A run in a list."""

    id: Id
    project: str
    name: str
    kind: str | None
    owner: str | None
    team: str | None
    model_family: str | None
    parameter_count: int | None
    tags: dict[str, str]
    trackers: list[TrackerOut]
    started_at: Time | None
    created_at: Time

    @classmethod
    def from_row(cls, row: RunRow) -> Self:
        return cls.model_construct(**_members(row))


class RunOut(RunItem):
    """A run with its config. `not_applied`: what a second start said otherwise; the first start stays."""

    config: AsSent
    not_applied: list[str]

    @classmethod
    def from_row(cls, row: RunRow, config: dict[str, Any] | None = None, not_applied: Sequence[str] = ()) -> Self:
        return cls.model_construct(**_members(row), config=config, not_applied=list(not_applied))


def _members(row: RunRow) -> dict[str, Any]:
    own = ("id", "project", "name", "kind", "owner", "team", "model_family", "parameter_count")
    return {
        **{name: getattr(row, name) for name in (*own, "started_at", "created_at")},
        "tags": dict(row.tags),
        "trackers": [TrackerOut.from_spec(spec) for spec in row.trackers],
    }


class RunPage(Answer):
    items: list[RunItem]
    next_cursor: str | None


class ProjectPage(Answer):
    items: list[ProjectOut]
    next_cursor: str | None


class ResumePointIn(Shape):
    """Where the record of what was loaded is, or will be, found. `run` (name or id) is left out for the same run."""

    run: Name | None = None
    attempt: AttemptNumber | None = None
    step: Step
    kind: Literal["light", "archive"] | None = None


class SkipIn(Shape):
    """Steps whose data is left out; both ends included."""

    from_: Annotated[Step, Field(alias="from")]
    to: Step

    @model_validator(mode="after")
    def _upwards(self) -> Self:
        if self.to < self.from_:
            raise ValueError(f"expected 'to' at or after 'from'; got {self.from_} to {self.to}")
        return self


class AttemptIn(Shape):
    key: Name | None = None
    resumed_from: Id | ResumePointIn | None = None
    restart: bool = False
    command: LongText | None = None
    reason: LongText | None = None
    changes: LongText | None = None
    skip: Annotated[list[SkipIn], Field(max_length=1_000)] = Field(default_factory=list)
    config: FreeObject | None = None
    environment: FreeObject | None = None
    layout: LayoutIn | None = None
    nodes: Annotated[list[Name], Field(max_length=100_000)] = Field(default_factory=list)
    started_at: Time | None = None

    def to_spec(self) -> AttemptSpec:
        return AttemptSpec(
            key=self.key,
            resumed_from=self._point(),
            restart=self.restart,
            command=self.command,
            reason=self.reason,
            changes=self.changes,
            skip=[(each.from_, each.to) for each in self.skip],
            config=self.config,
            environment=self.environment,
            layout=self.layout.to_spec() if self.layout else None,
            nodes=self.nodes,
            started_at=self.started_at,
        )

    def _point(self) -> ResumePoint | None:
        if self.resumed_from is None:
            return None
        if isinstance(self.resumed_from, int):
            return ResumePoint(checkpoint_id=self.resumed_from)
        said = self.resumed_from
        return ResumePoint(run=said.run, attempt=said.attempt, step=said.step, kind=said.kind)


class AttemptPatch(Patch):
    """A merge patch: what is named is set."""

    amends: ClassVar[type[Shape]] = AttemptIn

    state: AttemptState | None = None
    ended_at: Time | None = None
    exit_code: Annotated[int, Field(ge=-(2**31), le=2**31 - 1)] | None = None
    heartbeat_at: Time | None = None
    step: Step | None = None
    nodes: Annotated[list[Name], Field(max_length=100_000)] | None = None

    def to_changes(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in self.model_fields_set}
        if named.get("state", "") is None:
            del named["state"]  # null takes a value away, and an attempt always has a state
        return named


class ResumePointOut(Answer):
    checkpoint_id: Id | None
    run: str | None
    attempt: int | None
    step: int | None
    kind: str | None

    @classmethod
    def from_point(cls, point: ResumePoint) -> Self:
        return cls.model_construct(
            checkpoint_id=point.checkpoint_id,
            run=point.run,
            attempt=point.attempt,
            step=point.step,
            kind=point.kind,
        )


class SkipOut(Answer):
    from_: Annotated[int, Field(serialization_alias="from")]
    to: int


class ConfirmedPieces(Answer):
    """What became of each piece: restored, fresh, absent or unknown."""

    weights: str
    optimizer: str
    data_position: str
    random_state: str

    @classmethod
    def from_pieces(cls, pieces: Mapping[PieceName, str]) -> Self:
        named: dict[str, Any] = {piece.value: pieces[piece] for piece in PieceName}
        return cls.model_construct(**named)


class ResumeOut(Answer):
    """What the receipts of a resumed attempt say together: unconfirmed until one says what became of every piece."""

    state: Literal["confirmed", "partial", "unconfirmed"]
    pieces: ConfirmedPieces
    restore_seconds: float | None
    receipts: int

    @classmethod
    def from_row(cls, row: Confirmation) -> Self:
        return cls.model_construct(
            state=row.state,
            pieces=ConfirmedPieces.from_pieces(row.pieces),
            restore_seconds=row.restore_seconds,
            receipts=row.receipts,
        )


class AttemptOut(Answer):
    """`live_through_step`: later steps of this attempt are superseded; null: none are; -1: all are.

    `resume`: what the attempt says that it restored; null where it loaded nothing. `not_applied`: fields that this
    second call with its key said otherwise than the first, which stays.
    """

    id: Id
    number: int
    key: str | None
    state: str
    resumed_from: ResumePointOut | None
    restart: bool
    live_through_step: int | None
    command: str | None
    reason: str | None
    changes: str | None
    skip: list[SkipOut]
    nodes: list[str]
    started_at: Time | None
    ended_at: Time | None
    exit_code: int | None
    heartbeat_at: Time | None
    step: int | None
    resume: ResumeOut | None
    not_applied: list[str]

    @classmethod
    def from_row(cls, row: AttemptRow, receipts: Confirmation | None = None) -> Self:
        own = ("id", "number", "key", "state", "restart", "live_through_step", "command", "reason", "changes")
        ended = ("started_at", "ended_at", "exit_code", "heartbeat_at")
        return cls.model_construct(
            **{name: getattr(row, name) for name in own + ended},
            resumed_from=ResumePointOut.from_point(row.resumed_from) if row.resumed_from else None,
            skip=[SkipOut.model_construct(from_=start, to=end) for start, end in row.skip],
            nodes=list(row.nodes),
            not_applied=list(row.not_applied),
            step=row.heartbeat_step,
            resume=ResumeOut.from_row(receipts or UNCONFIRMED) if row.resumed_from or receipts else None,
        )


class ListedAttempt(AttemptOut):
    """`saved_step`: the last step of which a checkpoint is recorded; `reached_step`: the last that a save, a heartbeat
    or a curve tells of."""

    saved_step: int | None
    reached_step: int | None

    def with_progress(self, progress: Progress) -> Self:
        return self.model_copy(update={"saved_step": progress.saved_step, "reached_step": progress.reached_step})


class AttemptPage(Answer):
    items: list[ListedAttempt]
    next_cursor: str | None


class PointsIn(Shape):
    """A stretch of one curve; steps ascend."""

    name: Name
    steps: Annotated[list[Step], Field(max_length=1_000_000)]
    values: Annotated[list[Number], Field(max_length=1_000_000)]
    attempt: AttemptNumber | None = None

    def to_points(self) -> Points:
        return Points(self.name, self.steps, self.values, self.attempt)


SeriesIn = Annotated[list[PointsIn], Field(max_length=1_000)]


class CurveOut(Answer):
    attempt: int
    name: str
    steps: Sequence[int]
    values: Sequence[Number]


class CurvePage(Answer):
    items: list[CurveOut]
    next_cursor: str | None


class SeriesReport(Answer):
    points: int
