"""Shapes of rollback."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from api.schemas.common import Answer, CheckpointRef, Id, Name, Number, Shape, Step, Time
from api.schemas.parts import LayoutIn
from api.schemas.search import Conditions
from registry.checkpoints.rows import CheckpointIdentity
from registry.recovery.answers import Candidate, Excluded, RollbackAnswer, Served, SpikeFound, WatchedOnset
from registry.recovery.every_capability import Fallen
from registry.recovery.watched import Watch

AliasName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,128}/[A-Za-z0-9._-]{1,128}$")]


_HOW_TO_FIND: Final = (
    "the id of the run: GET /api/v1/runs?project=llm&name=7b gives that of llm/7b; or alias as project/name"
)


class WatchIn(Shape):
    """What must not have fallen: a benchmark, or a capability."""

    benchmark: Name | None = None
    capability: Name | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.benchmark is None) == (self.capability is None):
            raise ValueError("expected either a benchmark or a capability")
        return self

    def to_watch(self) -> Watch:
        return Watch(self.benchmark, self.capability)


class RollbackIn(Shape):
    """What to roll back: a run, or an alias as "project/name". Mode training unless an alias is given."""

    run_id: Id | None = None
    alias: AliasName | None = None
    mode: Literal["training", "production"] | None = None
    conditions: Conditions = Field(default_factory=list)
    after: Time | None = None
    before: Time | None = None
    at_or_before_step: Step | None = None
    watch: WatchIn | None = None
    target_layout: LayoutIn | None = None
    rto_seconds: Annotated[float, Field(gt=0, le=1e9)] | None = None
    limit: Annotated[int, Field(ge=1, le=1_000)] = 5

    @model_validator(mode="before")
    @classmethod
    def _by_its_id(cls, sent: Any) -> Any:
        if not isinstance(sent, dict):
            return sent
        if "run" in sent:
            raise ValueError(f"there is no field run: expected run_id, {_HOW_TO_FIND}")
        if isinstance(sent.get("run_id"), str) and "/" in sent["run_id"]:
            raise ValueError(f"run_id is a name: expected {_HOW_TO_FIND}")
        return sent

    @model_validator(mode="after")
    def _run_or_alias(self) -> Self:
        if (self.run_id is None) == (self.alias is None):
            raise ValueError('expected either run_id or alias, the latter as "project/name"')
        return self


class PointOut(Answer):
    """An evaluated checkpoint on the common scale, where larger is better. `p_bad`: the chance that it is bad."""

    checkpoint: CheckpointRef
    value: Number
    stderr: float | None
    p_bad: float | None


class OnsetOut(Answer):
    """When what is watched began to fall. `established` false: it may be noise.

    `why`: whose results do not count, and why nothing was scanned where nothing was. `alone`: the steps of single
    scores that those around them contradict; they were left out, and are worth another evaluation.
    `found_by`: `scores` (the scan of all), `bisect` (`bisect_id` says which) or `comparison` (the newest is worse than
    the best earlier one); of the last two, `q_value` is that of the fall, and `p_no_change` is null.
    `points` are the newest of `evaluated` checkpoints, those around the fall, and of the others every so many.
    """

    watch: str
    made_of: list[str]
    established: bool
    shape: str | None
    p_no_change: float | None
    drop: float | None
    drop_stderr: float | None
    after_step: int | None
    by_step: int | None
    found_by: Literal["scores", "bisect", "comparison"] | None
    q_value: float | None
    bisect_id: Id | None
    sentence: str
    why: str | None
    alone: list[int]
    evaluated: int
    points: list[PointOut]

    @classmethod
    def from_row(cls, row: WatchedOnset) -> Self:
        found = row.onset
        names: tuple[str, ...] = ("shape", "p_no_change", "drop", "drop_stderr", "after_step", "by_step")
        names += ("found_by", "q_value", "bisect_id")
        return cls.model_construct(
            watch=row.watch.words,
            made_of=list(row.made_of),
            established=found is not None and found.is_established,
            sentence=found.sentence if found is not None else row.why,
            why=row.why or None,
            alone=list(row.alone),
            evaluated=row.evaluated,
            points=[
                PointOut.model_construct(
                    checkpoint=CheckpointRef.from_row(point.checkpoint),
                    value=point.value,
                    stderr=point.stderr,
                    p_bad=point.p_bad,
                )
                for point in row.points
            ],
            **{name: getattr(found, name) if found is not None else None for name in names},
        )


class CopyOut(Answer):
    """The copy that the restore time is reckoned for."""

    uri: str
    tier: str
    host: str | None
    bytes: int | None
    state: str
    verification: str


class CandidateOut(Answer):
    """A checkpoint to go back to. `terms`: the figures of its rank; `reasons`: in words, with what would change it."""

    checkpoint: CheckpointRef
    rank: int
    terms: dict[str, Number | str | None]
    reasons: list[str]
    copy_: Annotated[CopyOut, Field(serialization_alias="copy")]

    @classmethod
    def from_row(cls, row: Candidate) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            rank=row.rank,
            terms=dict(row.terms),
            reasons=list(row.reasons),
            copy_=CopyOut.model_construct(**{name: getattr(row.copy, name) for name in CopyOut.model_fields}),
        )


class ServedOut(Answer):
    """What the alias points at: the terms of its rank, were it a candidate; `sentence` holds it against the first."""

    checkpoint: CheckpointRef
    terms: dict[str, Number | str | None]
    sentence: str

    @classmethod
    def from_row(cls, row: Served) -> Self:
        checkpoint = CheckpointRef.from_row(row.checkpoint)
        return cls.model_construct(checkpoint=checkpoint, terms=dict(row.terms), sentence=row.sentence)


class ExcludedOut(Answer):
    checkpoint: CheckpointRef
    filter: str
    reason: str

    @classmethod
    def from_row(cls, row: Excluded) -> Self:
        checkpoint = CheckpointRef.from_row(row.checkpoint)
        return cls.model_construct(checkpoint=checkpoint, filter=row.filter, reason=row.reason)


class SkipOut(Answer):
    """Steps whose data is skipped, both ends included."""

    from_: Annotated[int, Field(serialization_alias="from")]
    to: int


class SpikeOut(Answer):
    """The newest spike of the loss: rewind to the checkpoint of step `rewind_to`, and skip the data of `skip`.

    Where the run saved nothing before the spike, `checkpoint` is what it came from, of another run; null: it starts
    again from nothing. `attempt` is the body of POST /runs/{id}/attempts for the new attempt; null: none is needed.
    """

    from_step: int
    to_step: int
    shape: str
    recovered: bool
    level: Number
    peak: Number
    curve: str
    rewind_to: int | None
    checkpoint: CheckpointRef | None
    skip: list[SkipOut]
    sentence: str
    attempt: dict[str, Any] | None

    @classmethod
    def from_row(cls, row: SpikeFound) -> Self:
        spike, target = row.spike, row.rewind_to
        return cls.model_construct(
            from_step=spike.from_step,
            to_step=spike.to_step,
            shape=spike.shape,
            recovered=spike.recovered,
            level=spike.level,
            peak=spike.peak,
            curve=row.curve,
            rewind_to=None if target is None else target.step,
            checkpoint=_ref(target),
            skip=[SkipOut.model_construct(from_=start, to=end) for start, end in row.skip],
            sentence=row.sentence,
            attempt=row.attempt,
        )


class FallenOut(Answer):
    """A capability that fell though nobody asked about it: send it as `watch`, to go back to before."""

    capability: str
    after_step: int | None
    by_step: int | None
    drop: float | None
    drop_stderr: float | None
    sentence: str

    @classmethod
    def from_row(cls, row: Fallen) -> Self:
        names = ("after_step", "by_step", "drop", "drop_stderr", "sentence")
        found = {name: getattr(row.onset, name) for name in names}
        return cls.model_construct(capability=row.watch.words, **found)


class RollbackOut(Answer):
    """`excluded` shows the newest; `excluded_counts` counts all of them by filter.

    Without a `watch`, `fallen` are the capabilities of `looked_at` that fell: they leave no checkpoint out. Where no
    candidate is left, `loosen` names the filters that give some when they are loosened (together), and how.
    """

    mode: str
    sentence: str
    onset: OnsetOut | None
    spike: SpikeOut | None
    last_known_good: CheckpointRef | None
    served: ServedOut | None
    candidates: list[CandidateOut]
    excluded: list[ExcludedOut]
    excluded_counts: dict[str, int]
    considered: int
    at_step: int | None
    assumptions: list[str]
    judged_by: list[str]
    fallen: list[FallenOut]
    looked_at: list[str]
    loosen: dict[str, str]

    @classmethod
    def from_answer(cls, row: RollbackAnswer) -> Self:
        return cls.model_construct(
            mode=row.mode,
            sentence=row.sentence,
            onset=OnsetOut.from_row(row.onset) if row.onset is not None else None,
            spike=SpikeOut.from_row(row.spike) if row.spike is not None else None,
            last_known_good=_ref(row.last_known_good),
            served=ServedOut.from_row(row.served) if row.served is not None else None,
            candidates=[CandidateOut.from_row(each) for each in row.candidates],
            excluded=[ExcludedOut.from_row(each) for each in row.excluded],
            excluded_counts=dict(row.excluded_counts),
            considered=row.considered,
            at_step=row.at_step,
            assumptions=list(row.assumptions),
            judged_by=list(row.judged_by),
            fallen=[FallenOut.from_row(each) for each in row.fallen],
            looked_at=list(row.looked_at),
            loosen=dict(row.loosen),
        )


def _ref(row: CheckpointIdentity | None) -> CheckpointRef | None:
    return None if row is None else CheckpointRef.from_row(row)
