"""Shapes of the fault ledger: incidents, resume receipts, suspect checkpoints."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from api.schemas.common import (
    Answer,
    AttemptNumber,
    CheckpointRef,
    Id,
    LongText,
    Name,
    NonNegative,
    Patch,
    RunRef,
    Shape,
    Step,
    Text,
    Time,
)
from api.schemas.runs import ConfirmedPieces, ResumePointIn, ResumePointOut
from registry.checkpoints.rows import CheckpointIdentity
from registry.db import now
from registry.incidents.causes import cause_of
from registry.incidents.receipts import NewReceipt, ReceiptRow
from registry.incidents.shapes import IncidentRow, NewIncident
from registry.incidents.suspicion import Instead, Suspicion
from registry.resume_points import ResumePoint
from registry.types import PieceName

IncidentKind = Literal["crashed", "lost", "stalled", "reformed", "reported"]
CauseName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9](-?[a-z0-9])*$", max_length=64)]
ExitCode = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Signal = Annotated[str, StringConstraints(pattern=r"^SIG[A-Z0-9+-]{1,20}$")]
Word = Literal["restored", "fresh", "absent", "unknown"]


class _OfRun(Shape):
    """A run by its id, or by project and name; an attempt of it by number or key."""

    run_id: Id | None = None
    project: Name | None = None
    run: Name | None = None
    attempt: AttemptNumber | None = None
    attempt_key: Name | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.run_id is None and (self.project is None or self.run is None):
            raise ValueError("name the run: give run_id, or project and run")
        if self.run_id is not None and (self.project is not None or self.run is not None):
            raise ValueError("name the run in one way: run_id, or project and run")
        if self.attempt is not None and self.attempt_key is not None:
            raise ValueError("name the attempt in one way: attempt, or attempt_key")
        return self


class IncidentIn(_OfRun):
    """Without `attempt` and `attempt_key` it is of the run's newest attempt; with `"attempt": null` of none."""

    kind: IncidentKind = "reported"
    cause: CauseName | None = None
    evidence: Annotated[list[Text], Field(max_length=20)] = Field(default_factory=list)
    occurred_at: Time | None = None
    exit_code: ExitCode | None = None
    signal: Signal | None = None
    node: Name | None = None
    hardware: Name | None = None
    log_excerpt: LongText | None = None
    step: Step | None = None
    steps_lost: Step | None = None
    checkpoint_id: Id | None = None
    replica_id: Id | None = None
    signature: Annotated[Name, StringConstraints(max_length=300)] | None = None
    note: LongText | None = None
    key: Name | None = None
    recovered_at: Time | None = None

    def to_new(self) -> NewIncident:
        own = (
            *("kind", "attempt", "attempt_key", "cause", "evidence", "occurred_at", "exit_code", "signal", "node"),
            *("hardware", "log_excerpt", "step", "steps_lost", "checkpoint_id", "replica_id", "signature", "note"),
            *("key", "recovered_at"),
        )
        unsaid = not self.model_fields_set & {"attempt", "attempt_key"}
        return NewIncident(**{name: getattr(self, name) for name in own}, newest_attempt=unsaid)


class IncidentPatch(Patch):
    """A merge patch. `open` false closes it now, `closed_at` at a time; null or `open` true opens it again."""

    amends: ClassVar[type[Shape]] = IncidentIn

    cause: CauseName | None = None
    note: LongText | None = None
    node: Name | None = None
    hardware: Name | None = None
    closed_at: Time | None = None
    open: bool | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if {"open", "closed_at"} <= self.model_fields_set:
            raise ValueError("give either open or closed_at")
        if "open" in self.model_fields_set and self.open is None:
            raise ValueError("open is true or false")
        return self

    def to_changes(self) -> dict[str, Any]:
        named = {name: getattr(self, name) for name in self.model_fields_set}
        if "open" in named:
            closed_at: datetime | None = None if named.pop("open") else now()
            named["closed_at"] = closed_at
        return named


class InsteadOut(Answer):
    """What to load instead: another copy of the same checkpoint, or an older checkpoint."""

    checkpoint_id: Id
    step: int
    replica_id: Id | None
    uri: str | None
    tier: str | None
    sentence: str

    @classmethod
    def from_row(cls, row: Instead) -> Self:
        return cls.model_construct(**{name: getattr(row, name) for name in cls.model_fields})


class SuspectOut(Answer):
    """`replica_id`: only this copy is suspect; null: the checkpoint as a whole."""

    replica_id: Id | None
    reason: str
    incidents: int
    since: Time
    instead: InsteadOut | None

    @classmethod
    def from_row(cls, row: Suspicion, instead: Instead | None) -> Self:
        return cls.model_construct(
            replica_id=row.replica_id,
            reason=row.reason,
            incidents=row.incidents,
            since=row.since,
            instead=InsteadOut.from_row(instead) if instead else None,
        )


class IncidentItem(Answer):
    """`steps_lost`: since the last committed checkpoint, by the recorded steps, or `said` by the reporter.

    `cause_said_by`: who named the cause; null where it was read from the log or is unknown. `checkpoint`: what the
    attempt had loaded.
    """

    id: Id
    project: str
    run: RunRef
    attempt: int | None
    key: str | None
    kind: str
    state: Literal["open", "recovered", "closed"]
    cause: str
    cause_title: str
    cause_family: str
    planned: bool
    cause_said_by: str | None
    evidence: list[str]
    occurred_at: Time
    exit_code: int | None
    signal: str | None
    node: str | None
    hardware: str | None
    last_step: int | None
    steps_lost: int | None
    steps_lost_by: Literal["steps", "said"] | None
    checkpoint: CheckpointRef | None
    replica_id: Id | None
    signature: str | None
    note: str | None
    opened_by: str
    created_at: Time
    closed_at: Time | None
    recovered_at: Time | None
    recovery_seconds: float | None

    @classmethod
    def from_row(cls, row: IncidentRow, known: Mapping[int, CheckpointIdentity]) -> Self:
        return cls.model_construct(**_members(row, known))


class IncidentOut(IncidentItem):
    """With the end of the log, and whether the checkpoint that was loaded is suspect.

    `not_applied`, in the answer to a report: the fields of it that the incident, which was known, says otherwise.
    """

    log_excerpt: str | None
    suspect: SuspectOut | None
    not_applied: list[str]

    @classmethod
    def from_row(
        cls,
        row: IncidentRow,
        known: Mapping[int, CheckpointIdentity],
        suspect: SuspectOut | None = None,
    ) -> Self:
        more = {"log_excerpt": row.log_excerpt, "suspect": suspect, "not_applied": list(row.not_applied)}
        return cls.model_construct(**(_members(row, known) | more))


def _members(row: IncidentRow, known: Mapping[int, CheckpointIdentity]) -> dict[str, Any]:
    own = (
        *("id", "project", "attempt", "key", "kind", "cause", "cause_said_by", "occurred_at", "exit_code", "signal"),
        *("node", "hardware", "last_step", "steps_lost", "replica_id", "signature", "note", "opened_by"),
        *("created_at", "closed_at", "recovered_at", "recovery_seconds"),
    )
    loaded = known.get(row.checkpoint_id) if row.checkpoint_id is not None else None
    cause = cause_of(row.cause)
    by = "said" if row.steps_lost_said else "steps"
    return {
        **{name: getattr(row, name) for name in own},
        "run": RunRef.model_construct(id=row.run_id, name=row.run),
        "state": row.ending or "open",
        "cause_title": cause.title,
        "cause_family": cause.family,
        "planned": cause.planned,
        "evidence": list(row.evidence),
        "steps_lost_by": None if row.steps_lost is None else by,
        "checkpoint": CheckpointRef.from_row(loaded) if loaded else None,
    }


class IncidentPage(Answer):
    items: list[IncidentItem]
    next_cursor: str | None


class SuspicionIn(Shape):
    suspect: bool
    reason: Text


class SuspicionOut(Answer):
    """`suspect`: as a whole, so that nobody is advised to load it. `copies`: single copies of it that are suspect."""

    suspect: bool
    suspicion: SuspectOut | None
    copies: list[SuspectOut]


class LoadedIn(ResumePointIn):
    """Where the record of what was loaded is, or will be, found."""

    project: Name | None = None


class AttemptRefIn(Shape):
    run_id: Id
    number: AttemptNumber


class PiecesIn(Shape):
    """What became of each piece; one that is left out is unknown."""

    weights: Word = "unknown"
    optimizer: Word = "unknown"
    data_position: Word = "unknown"
    random_state: Word = "unknown"


class ReceiptIn(Shape):
    """The attempt by run (id, or project and name) and number or key; without them, the newest of the checkpoint's run.

    `checkpoint_id`, or `checkpoint` by its run, attempt, step and kind; neither: what the attempt said it resumed from.
    Where the attempt is given whole, as `{run_id, number}` or by its key, `project`, `run`, `step` and `kind` beside it
    name the checkpoint.
    """

    checkpoint_id: Id | None = None
    checkpoint: LoadedIn | None = None
    run_id: Id | None = None
    project: Name | None = None
    run: Name | None = None
    attempt: AttemptNumber | AttemptRefIn | None = None
    attempt_key: Name | None = None
    step: Step | None = None
    kind: Literal["light", "archive"] | None = None
    pieces: PiecesIn
    restore_seconds: NonNegative | None = None
    note: LongText | None = None
    restored_at: Time | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if sum(each is not None for each in (self.checkpoint_id, self.checkpoint, self.step)) > 1:
            raise ValueError("name what was loaded in one way: checkpoint_id, checkpoint, or step")
        if self.kind is not None and self.step is None:
            raise ValueError("kind belongs to a step")
        if self.attempt is not None and self.attempt_key is not None:
            raise ValueError("name the attempt in one way: attempt, or attempt_key")
        if self.run_id is not None and (self.project is not None or self.run is not None):
            raise ValueError("name the run in one way: run_id, or project and run")
        if (self.project is None) != (self.run is None):
            raise ValueError("a run's name needs its project, and the project the run")
        return self

    def to_new(self) -> NewReceipt:
        return NewReceipt(
            loaded=self._point(),
            attempt=self.attempt.number if isinstance(self.attempt, AttemptRefIn) else self.attempt,
            attempt_key=self.attempt_key,
            pieces={piece: getattr(self.pieces, piece.value) for piece in PieceName},
            restore_seconds=self.restore_seconds,
            note=self.note,
            restored_at=self.restored_at,
        )

    def _point(self) -> ResumePoint | None:
        if self.checkpoint_id is not None:
            return ResumePoint(checkpoint_id=self.checkpoint_id)
        if self.step is not None:
            return ResumePoint(run=self.run, step=self.step, kind=self.kind)
        if self.checkpoint is None:
            return None
        said = self.checkpoint
        return ResumePoint(run=said.run, attempt=said.attempt, step=said.step, kind=said.kind)


class ReceiptOut(Answer):
    """`loaded.checkpoint_id` is null until the record of what was loaded arrives."""

    id: Id
    run_id: Id
    attempt: int
    loaded: ResumePointOut
    pieces: ConfirmedPieces
    restore_seconds: float | None
    note: str | None
    restored_at: Time | None
    created_at: Time

    @classmethod
    def from_row(cls, row: ReceiptRow) -> Self:
        own = ("id", "run_id", "attempt", "restore_seconds", "note", "restored_at", "created_at")
        return cls.model_construct(
            **{name: getattr(row, name) for name in own},
            loaded=ResumePointOut.from_point(row.loaded),
            pieces=ConfirmedPieces.from_pieces(row.pieces),
        )


class ReceiptPage(Answer):
    items: list[ReceiptOut]
    next_cursor: str | None
