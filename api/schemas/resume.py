"""Shapes of resuming: what a launch can go on from, and what its hosts agree on."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, model_validator

from api.schemas.common import Answer, CheckpointRef, FreeObject, Id, Name, RunRef, Shape, Text
from api.schemas.parts import LayoutIn
from api.schemas.recovery import CompatibilityOut, CopyOptionOut
from registry.recovery.agreement import MAX_HOSTS, Agreement, Vote
from registry.recovery.resume_shapes import LeftOut, ResumeCandidate, ResumePlan, ResumeQuestion
from registry.types import PieceName

Rto = Annotated[float, Field(gt=0, le=1e9)]
Hosts = Annotated[list[Name], Field(max_length=MAX_HOSTS)]
PieceWord = Literal["weights", "optimizer", "data_position", "random_state"]
ALL_NEEDED: Final[tuple[PieceWord, ...]] = ("weights", "optimizer", "data_position")


class ResumePlanIn(Shape):
    """What a launch needs. `require`: pieces that must be present, the weights always; `hosts`: those it runs on.

    `config`: today's, which the model and a counter of samples are held against. `skip`: checkpoints that a host of
    the launch could not read.
    """

    layout: LayoutIn | None = None
    rto_seconds: Rto | None = None
    require: Annotated[list[PieceWord], Field(max_length=10)] = Field(default_factory=lambda: list(ALL_NEEDED))
    hosts: Hosts = Field(default_factory=list)
    config: FreeObject | None = None
    skip: Annotated[list[Id], Field(max_length=1_000)] = Field(default_factory=list)
    limit: Annotated[int, Field(ge=1, le=100)] = 5

    def to_question(self) -> ResumeQuestion:
        return ResumeQuestion(
            layout=self.layout.to_spec() if self.layout is not None else None,
            rto_seconds=self.rto_seconds,
            require=tuple(PieceName(name) for name in self.require),
            hosts=frozenset(self.hosts),
            config=self.config,
            skip=frozenset(self.skip),
            limit=self.limit,
        )


class ResumeCandidateOut(Answer):
    """A checkpoint to go on from; `steps_behind`: what the newest had reached beyond it."""

    checkpoint: CheckpointRef
    rank: int
    steps_behind: int
    copies: list[CopyOptionOut]
    compatibility: CompatibilityOut
    notes: list[str]

    @classmethod
    def from_row(cls, row: ResumeCandidate) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            rank=row.rank,
            steps_behind=row.steps_behind,
            copies=[CopyOptionOut.from_option(each) for each in row.copies],
            compatibility=CompatibilityOut.from_row(row.compatibility),
            notes=list(row.notes),
        )


class LeftOutOut(Answer):
    checkpoint: CheckpointRef
    filter: str
    reason: str

    @classmethod
    def from_row(cls, row: LeftOut) -> Self:
        checkpoint = CheckpointRef.from_row(row.checkpoint)
        return cls.model_construct(checkpoint=checkpoint, filter=row.filter, reason=row.reason)


class ResumePlanOut(Answer):
    """Candidates, the newest first. `excluded`: what was passed over on the way to the last of them, and why."""

    run: RunRef
    project: str
    sentence: str
    candidates: list[ResumeCandidateOut]
    excluded: list[LeftOutOut]
    excluded_counts: Mapping[str, int]
    considered: int

    @classmethod
    def from_plan(cls, row: ResumePlan) -> Self:
        return cls.model_construct(
            run=RunRef.model_construct(id=row.run.id, name=row.run.name),
            project=row.project,
            sentence=row.sentence,
            candidates=[ResumeCandidateOut.from_row(each) for each in row.candidates],
            excluded=[LeftOutOut.from_row(each) for each in row.excluded],
            excluded_counts=dict(row.excluded_counts),
            considered=row.considered,
        )


class VoteIn(Shape):
    """What one host of a launch says. `key` names the launch, `hosts` is how many it has.

    `checkpoint_id`: what this host can read, null where it can read nothing; `instead_of`: what was proposed before
    and this host cannot read. A host that says the same again asks how it stands.
    """

    key: Name
    host: Name
    hosts: Annotated[int, Field(ge=1, le=MAX_HOSTS)]
    checkpoint_id: Id | None = None
    instead_of: Id | None = None
    reason: Text = ""

    @model_validator(mode="after")
    def _another_one(self) -> Self:
        if self.instead_of is not None and self.instead_of == self.checkpoint_id:
            raise ValueError("expected another checkpoint_id than instead_of")
        return self

    def to_vote(self) -> Vote:
        return Vote(self.key, self.host, self.hosts, self.checkpoint_id, self.instead_of, self.reason)


class AgreementOut(Answer):
    """What the launch agrees on now. `all_ready`: every host can read it, and it never changes again.

    `failed`: why the launch cannot go on; `refused`: checkpoints that a host could not read.
    """

    checkpoint: CheckpointRef
    hosts: int
    ready: list[str]
    all_ready: bool
    refused: list[Id]
    failed: str | None

    @classmethod
    def from_row(cls, row: Agreement) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            hosts=row.hosts,
            ready=list(row.ready),
            all_ready=row.is_sealed,
            refused=list(row.refused),
            failed=row.failed,
        )
