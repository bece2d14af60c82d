"""Shapes of checkpoints."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field

from api.answers import AsSent
from api.schemas.common import (
    Answer,
    AttemptNumber,
    CheckpointRef,
    Count,
    FreeObject,
    FreeValue,
    Id,
    LeftOutProjects,
    LongText,
    Name,
    NonNegative,
    Number,
    Patch,
    Shape,
    ShortName,
    Step,
    Text,
    Time,
    wire_number,
)
from api.schemas.parts import (
    CodeIn,
    CodeOut,
    DataVersionIn,
    DataVersionOut,
    LayoutIn,
    LayoutOut,
    PiecesIn,
    ReplicaIn,
    ScoreIn,
    Tags,
)
from registry import ids
from registry.checkpoints.commands import BatchItem
from registry.checkpoints.completeness import resumability_of
from registry.checkpoints.detail import CheckpointDetail, ReplicaRow
from registry.checkpoints.registration import ParentSpec, PieceSpec, Registration
from registry.checkpoints.rows import CheckpointIdentity, CheckpointRow, RunName
from registry.checkpoints.writing import Registered
from registry.evals.read import ScoreRow
from registry.evals.scores import NewScore
from registry.runs import RunBrief
from registry.snapshots import DataSpec
from registry.types import PieceName, Presence

Relation = Literal[
    "resumed_from",
    "fine_tuned_from",
    "merged_from",
    "resharded_from",
    "converted_from",
    "quantised_from",
    "distilled_from",
]


class ParentIn(Shape):
    checkpoint_id: Id
    relation: Relation


class _Content(Shape):
    """What can be said of a checkpoint beside its identity. What is left out is unknown."""

    saved_at: Time | None = None
    tokens_seen: Count | None = None
    epoch: NonNegative | None = None
    loss: Number | None = None
    lr: Number | None = None
    metrics: Annotated[dict[Name, Number], Field(max_length=10_000)] = Field(default_factory=dict)
    scores: (
        Annotated[list[ScoreIn], Field(max_length=10_000)] | Annotated[dict[Name, Number], Field(max_length=10_000)]
    ) = Field(default_factory=list)
    data_version: Name | DataVersionIn | None = None
    data_cursor: FreeValue | None = None
    code: CodeIn | None = None
    config: FreeObject | None = None
    environment: FreeObject | None = None
    layout: LayoutIn | None = None
    format: Text | None = None
    format_version: Text | None = None
    pieces: PiecesIn = Field(default_factory=PiecesIn)
    replicas: Annotated[list[ReplicaIn], Field(max_length=1_000)] = Field(default_factory=list)
    parents: Annotated[list[ParentIn], Field(max_length=1_000)] = Field(default_factory=list)
    save_seconds: NonNegative | None = None
    stall_seconds: NonNegative | None = None
    tags: Tags = Field(default_factory=dict)
    milestone: bool = False
    notes: LongText | None = None

    def content(self) -> dict[str, Any]:
        data_version = self.data_version
        return {
            "saved_at": self.saved_at,
            "tokens_seen": self.tokens_seen,
            "epoch": self.epoch,
            "loss": self.loss,
            "lr": self.lr,
            "metrics": self.metrics,
            "scores": _scores(self.scores),
            "data_version": DataSpec(data_version)
            if isinstance(data_version, str)
            else data_version and data_version.to_spec(),
            "data_cursor": self.data_cursor,
            "code": self.code and self.code.to_spec(),
            "config": self.config,
            "environment": self.environment,
            "layout": self.layout and self.layout.to_spec(),
            "format": self.format,
            "format_version": self.format_version,
            "pieces": self.pieces.to_specs(),
            "replicas": [replica.to_spec() for replica in self.replicas],
            "parents": [ParentSpec(parent.checkpoint_id, parent.relation) for parent in self.parents],
            "save_seconds": self.save_seconds,
            "stall_seconds": self.stall_seconds,
            "tags": self.tags,
            "milestone": self.milestone,
            "notes": self.notes,
        }


def _scores(scores: list[ScoreIn] | dict[str, float]) -> list[NewScore]:
    if isinstance(scores, dict):
        return [NewScore(benchmark, value) for benchmark, value in scores.items()]
    return [score.to_score() for score in scores]


class CheckpointIn(_Content):
    """Only `step` is required. State committed, kind archive, attempt the run's newest."""

    step: Step
    attempt: AttemptNumber | None = None
    kind: Literal["light", "archive"] = "archive"
    state: Literal["pending", "committed"] = "committed"

    def to_registration(self) -> Registration:
        return Registration(step=self.step, attempt=self.attempt, kind=self.kind, state=self.state, **self.content())


class BatchItemIn(CheckpointIn):
    """A checkpoint with the names of its project and run, which are made where they are missing."""

    project: ShortName
    run: Name

    def to_item(self) -> BatchItem:
        return BatchItem(self.project, self.run, self.to_registration())


class CommitIn(_Content):
    """Any field of registration; what is given replaces what the pending checkpoint had."""

    def to_registration(self) -> Registration:
        return Registration(step=0, **self.content())


class CheckpointPatch(Patch):
    """A merge patch: a tag of null is taken away."""

    amends: ClassVar[type[Shape]] = CheckpointIn

    tags: Annotated[dict[Name, Text | None], Field(max_length=1_000)] | None = None
    notes: LongText | None = None
    milestone: bool | None = None
    loss: Number | None = None

    def to_changes(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


class BatchResult(Answer):
    index: int
    id: Id
    status: Literal["created", "unchanged", "committed"]


class BatchReport(Answer):
    """`warnings`: what was recorded as it came, and looks wrong: values that their benchmark's scale cannot hold."""

    accepted: int
    results: list[BatchResult]
    warnings: list[str]

    @classmethod
    def from_results(cls, results: list[Registered], warnings: list[str]) -> Self:
        return cls.model_construct(
            accepted=len(results),
            warnings=warnings,
            results=[
                BatchResult.model_construct(index=index, id=each.checkpoint_id, status=each.status)
                for index, each in enumerate(results)
            ],
        )


class PiecesOut(Answer):
    weights: str
    optimizer: str
    data_position: str
    random_state: str

    @classmethod
    def of(cls, states: Mapping[PieceName, str]) -> Self:
        weights, optimizer, position, random = (str(states[name]) for name in PieceName)
        return cls.model_construct(weights=weights, optimizer=optimizer, data_position=position, random_state=random)


class RegisteredOut(Answer):
    """What became of a registration. GET /checkpoints/{id} answers everything that is known.

    `warnings`: what was recorded as it came, and looks wrong: values that their benchmark's scale cannot hold.
    """

    id: Id
    checkpoint: CheckpointRef
    status: Literal["created", "unchanged", "committed"]
    state: str
    superseded: bool
    resumability: str
    pieces: PiecesOut
    warnings: list[str]

    @classmethod
    def of(cls, done: Registered, run: RunBrief, pieces: Mapping[Any, PieceSpec], warnings: list[str]) -> Self:
        identity = CheckpointIdentity(
            done.checkpoint_id,
            run.project,
            RunName(run.id, run.name),
            done.attempt,
            done.step,
            done.kind,
            done.saved_at,
        )
        states = {name: Presence(pieces[name].presence) if name in pieces else Presence.UNKNOWN for name in PieceName}
        return cls.model_construct(
            id=done.checkpoint_id,
            checkpoint=CheckpointRef.from_row(identity),
            status=done.status,
            state=done.state,
            superseded=done.superseded,
            resumability=resumability_of(states).value,
            pieces=PiecesOut.of(states),
            warnings=warnings,
        )


class PieceEvidence(Answer):
    """What says so. `position_evidence`: a loader's `state`, or a `counter` of samples."""

    evidence: str | None
    position_evidence: str | None
    moment: str | None


class PartOut(Answer):
    host: str
    ranks: str
    uri: str


class DigestOut(Answer):
    algorithm: str
    value: str


class ReplicaOut(Answer):
    """One copy. `managed`: below a storage root of this service; others are never read, copied or deleted by it."""

    id: Id
    uri: str
    tier: str
    host: str | None
    bytes: int | None
    file_count: int | None
    digest: DigestOut | None
    state: str
    verification: str
    managed: bool
    parts: list[PartOut]
    recorded_at: Time

    @classmethod
    def from_row(cls, row: ReplicaRow) -> Self:
        own = ("id", "uri", "tier", "host", "bytes", "file_count", "state", "verification", "managed", "recorded_at")
        digest = None
        if row.digest is not None and row.digest_algorithm is not None:
            digest = DigestOut.model_construct(algorithm=row.digest_algorithm, value=row.digest)
        return cls.model_construct(
            **{name: getattr(row, name) for name in own},
            digest=digest,
            parts=[PartOut.model_construct(host=host, ranks=ranks, uri=uri) for host, ranks, uri in row.parts],
        )


class ParentOut(Answer):
    checkpoint_id: Id
    relation: str


class ScoreOut(Answer):
    """One eval result; `current`: it is the one that counts now for its benchmark and metric."""

    benchmark: str
    metric: str
    filter: str
    value: Number | None
    stderr: float | None
    n_samples: int | None
    n_shot: int | None
    version: str | None
    harness: str | None
    harness_version: str | None
    evaluated_at: Time | None
    comparability: dict[str, Any]
    current: bool

    @classmethod
    def from_row(cls, row: ScoreRow) -> Self:
        return cls.model_construct(**{name: getattr(row, name) for name in cls.model_fields})


class ScorePage(Answer):
    items: list[ScoreOut]
    next_cursor: str | None


class ScoreReport(Answer):
    """`received` results, of which `recorded` were new. `warnings`: values that their benchmark's scale cannot hold,
    and results that do not count, since a later evaluation does."""

    received: int
    recorded: int
    warnings: list[str]


class CheckpointOut(Answer):
    """Everything that is known about one checkpoint. null is unknown."""

    checkpoint: CheckpointRef
    id: Id
    project: str
    state: str
    superseded: bool
    resumability: str
    pieces: PiecesOut
    piece_evidence: dict[str, PieceEvidence]
    saved_at_assumed: bool
    tokens_seen: int | None
    epoch: float | None
    loss: Number | None
    lr: Number | None
    metrics: dict[str, Number | None]
    scores: list[ScoreOut]
    tags: dict[str, str]
    milestone: bool
    notes: str | None
    config: AsSent
    environment: AsSent
    layout: LayoutOut | None
    code: CodeOut | None
    data_version: DataVersionOut | None
    data_cursor: AsSent
    format: str | None
    format_version: str | None
    save_seconds: float | None
    stall_seconds: float | None
    replicas: list[ReplicaOut]
    parents: list[ParentOut]
    aliases: list[str]
    created_at: Time
    committed_at: Time | None

    @classmethod
    def from_detail(cls, detail: CheckpointDetail, scores: list[ScoreRow]) -> Self:
        own = (
            *("state", "superseded", "saved_at_assumed", "tokens_seen", "epoch", "loss", "lr", "milestone", "notes"),
            *("config", "environment", "data_cursor", "format", "format_version", "save_seconds", "stall_seconds"),
            *("created_at", "committed_at"),
        )
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(detail.checkpoint),
            id=detail.checkpoint.id,
            project=detail.checkpoint.project,
            resumability=detail.resumability.value,
            pieces=PiecesOut.of({name: piece.presence for name, piece in detail.pieces.items()}),
            piece_evidence={
                name.value: PieceEvidence.model_construct(
                    evidence=piece.evidence, position_evidence=piece.position_evidence, moment=piece.moment
                )
                for name, piece in detail.pieces.items()
            },
            metrics=dict(detail.metrics),
            scores=[ScoreOut.from_row(row) for row in scores],
            tags=dict(detail.tags),
            layout=detail.layout and LayoutOut.from_spec(detail.layout),
            code=detail.code and CodeOut.from_spec(detail.code),
            data_version=detail.data_version and DataVersionOut.from_spec(detail.data_version),
            replicas=[ReplicaOut.from_row(row) for row in detail.replicas],
            parents=[
                ParentOut.model_construct(checkpoint_id=edge.parent_id, relation=edge.relation)
                for edge in detail.parents
            ],
            aliases=list(detail.aliases),
            **{name: getattr(detail, name) for name in own},
        )


class CheckpointItem(Answer):
    """A line of a list: the identity, what is always said, and the `fields` that were asked for.

    `saved_at_assumed`: nobody said when it was saved, and `saved_at` is when its record arrived.
    """

    id: Id
    checkpoint: CheckpointRef
    project: str
    run: dict[str, str]
    attempt: int
    step: int
    kind: str
    saved_at: Time
    saved_at_assumed: bool
    state: str
    superseded: bool
    resumability: str
    pieces: PiecesOut
    loss: Number | None
    lr: Number | None
    tokens_seen: int | None
    epoch: float | None
    format: str | None
    data_version: str | None
    milestone: bool
    notes: str | None
    values: dict[str, Any]

    @classmethod
    def from_row(cls, row: CheckpointRow) -> Self:
        here = row.checkpoint
        own = (
            *("saved_at_assumed", "state", "superseded", "loss", "lr", "tokens_seen", "epoch", "format"),
            *("milestone", "notes"),
        )
        return cls.model_construct(
            id=here.id,
            checkpoint=CheckpointRef.from_row(here),
            project=here.project,
            run={"id": ids.to_text(here.run.id), "name": here.run.name},
            attempt=here.attempt,
            step=here.step,
            kind=here.kind,
            saved_at=here.saved_at,
            resumability=row.resumability.value,
            pieces=PiecesOut.of(row.pieces),
            data_version=row.data_version,
            values={name: _plain(value) for name, value in row.values.items()},
            **{name: getattr(row, name) for name in own},
        )


def _plain(value: Any) -> Any:
    return wire_number(value) if isinstance(value, float) else value


class CheckpointPage(Answer):
    """`resolved`: which metric each `scores.…` of the query meant, one for all projects. `left_out`: for such a name,
    the projects that have the benchmark as another score only."""

    items: list[CheckpointItem]
    next_cursor: str | None
    resolved: dict[str, str | None]
    left_out: dict[str, list[LeftOutProjects]]
