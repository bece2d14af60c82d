"""Shapes of provenance: where a checkpoint comes from, and what testing a suspect showed."""

from typing import Annotated, Literal, Self

from pydantic import Field

from api.answers import AsSent
from api.schemas.common import Answer, CheckpointRef, Id, Name, Number, Shape, Text
from api.schemas.lineage import EdgeOut
from api.schemas.parts import CodeOut, LayoutOut
from registry.provenance.bundle import Provenance, Stage, StepRange


class StepRangeOut(Answer):
    """Both ends included; `attempt`: whose steps they are."""

    first: int
    last: int
    attempt: int

    @classmethod
    def many(cls, rows: tuple[StepRange, ...]) -> list[Self]:
        return [cls.model_construct(first=row.first, last=row.last, attempt=row.attempt) for row in rows]


class StageOut(Answer):
    """What a stretch of an attempt did on the way, up to `checkpoint`. `came_from` null: it began from nothing.

    `continued`: the attempt went on there, with other data or beyond where another way to the checkpoint left it.
    `tokens`: seen in this stage alone. `mix`: shares of its sources. `repeated`: steps that an abandoned attempt had
    trained before; `skipped`: steps whose data was left out.
    """

    checkpoint: CheckpointRef
    came_from: str | None
    first_step: int
    tokens: int | None
    data_version: str | None
    mix: dict[str, float] | None
    config_digest: str | None
    environment_digest: str | None
    layout: LayoutOut | None
    code: CodeOut | None
    command: str | None
    reason: str | None
    changes: str | None
    repeated: list[StepRangeOut]
    skipped: list[StepRangeOut]
    loss: Number | None

    @classmethod
    def from_row(cls, row: Stage) -> Self:
        own = ("came_from", "first_step", "tokens", "data_version", "config_digest", "environment_digest")
        said = ("command", "reason", "changes", "loss")
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            mix=None if row.mix is None else dict(row.mix),
            layout=row.layout and LayoutOut.from_spec(row.layout),
            code=row.code and CodeOut.from_spec(row.code),
            repeated=StepRangeOut.many(row.repeated),
            skipped=StepRangeOut.many(row.skipped),
            **{name: getattr(row, name) for name in (*own, *said)},
        )


class ProvenanceOut(Answer):
    """The whole chain. `stages`: newest first; `tokens_by_source` adds up what is known, `unknown` says what is not.

    `config` and `environment` are those of the checkpoint itself, else what its attempt or run was given later, which
    `notes` say; `dirty`: who ran with uncommitted code.
    """

    checkpoint: CheckpointRef
    tokens_seen: int | None
    tokens_by_source: dict[str, float]
    stages: list[StageOut]
    parents: list[EdgeOut]
    checkpoints: list[CheckpointRef]
    dirty: list[CheckpointRef]
    config: AsSent
    environment: AsSent
    notes: list[str]
    unknown: list[str]

    @classmethod
    def from_row(cls, row: Provenance) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.detail.checkpoint),
            tokens_seen=row.tokens_total,
            tokens_by_source=dict(row.tokens_by_source),
            stages=[StageOut.from_row(each) for each in row.stages],
            parents=[
                EdgeOut.model_construct(
                    child=each.child_id, parent=each.parent_id, relation=each.relation, lossless=each.lossless
                )
                for each in row.parents
            ],
            checkpoints=[CheckpointRef.from_row(each) for each in row.names.values()],
            dirty=[CheckpointRef.from_row(each) for each in row.dirty],
            config=row.config,
            environment=row.environment,
            notes=list(row.notes),
            unknown=list(row.unknown),
        )


class SuspectTestIn(Shape):
    """What reverting changes and training a short branch showed. `changes`: as `POST /compare` names them.

    `branch`: a checkpoint of that training; `confirmed` needs one.
    """

    baseline: Id
    candidate: Id
    changes: Annotated[list[Name], Field(min_length=1, max_length=100)]
    verdict: Literal["confirmed", "cleared"]
    branch: Id | None = None
    note: Text | None = None


class SuspectTestOut(Answer):
    baseline: Id
    candidate: Id
    changes: list[str]
    verdict: str
    branch: Id | None
    note: str | None

    @classmethod
    def from_body(cls, body: SuspectTestIn) -> Self:
        return cls.model_construct(**{name: getattr(body, name) for name in cls.model_fields})
