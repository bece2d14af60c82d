"""Shapes of bisects: which checkpoint to evaluate next, and what the scores so far say."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from api.schemas.common import Answer, CheckpointRef, Finite, Id, Name, NonNegative, Number, Positive, Shape
from registry.provenance.bisect import BisectAnswer, Target
from registry.provenance.bisect.answers import Evaluation, Gap, NextEvaluation, Skipped


class BisectIn(Shape):
    """The last checkpoint that is good, one that came from it and is bad, and what fell.

    `drop` (a fraction of the benchmark's own scale) sizes the evaluations; by default the fall that is recorded.
    `discordance`: the share of items whose answer changes between two checkpoints, assumed .15.
    """

    good: Id
    bad: Id
    benchmark: Name | None = None
    metric: Name | None = None
    filter: Annotated[str, Field(max_length=512)] | None = None
    capability: Name | None = None
    drop: Annotated[Finite, Field(gt=0, le=1)] | None = None
    discordance: Annotated[Finite, Field(gt=0, le=1)] | None = None

    @model_validator(mode="after")
    def names_one_target(self) -> Self:
        if (self.benchmark is None) == (self.capability is None):
            raise ValueError("expected either a benchmark or a capability")
        if self.capability is not None and (self.metric, self.filter) != (None, None):
            raise ValueError("a capability has no metric and no filter")
        return self

    def to_target(self) -> Target:
        return Target(self.benchmark, self.metric, self.filter, self.capability)


class ObservationIn(Shape):
    """A score measured for the search, on the benchmark's own scale (of a capability: its normalised mean).

    Give `n_samples` of how many items it is the mean, or its `stderr`; without either it counts as being of as many as
    were asked for. Of several for one checkpoint the most exact counts, of equally exact ones the newest: post a wrong
    one again. A value outside the benchmark's scale is refused.
    """

    checkpoint: Id
    value: Finite
    stderr: NonNegative | None = None
    n_samples: Positive | None = None


class GapOut(Answer):
    """The probability that the score fell between two neighbours."""

    after: CheckpointRef
    before: CheckpointRef
    probability: float

    @classmethod
    def from_row(cls, row: Gap) -> Self:
        return cls.model_construct(
            after=CheckpointRef.from_row(row.after),
            before=CheckpointRef.from_row(row.before),
            probability=row.probability,
        )


class NextOut(Answer):
    """What to evaluate, on how many items; `uri` is where a copy is."""

    checkpoint: CheckpointRef
    items: int
    probability_bad: float
    uri: str | None

    @classmethod
    def from_row(cls, row: NextEvaluation) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            items=row.items,
            probability_bad=row.probability_bad,
            uri=row.uri,
        )


class EvaluationOut(Answer):
    """A score that counts. `delta` from the good one, and its `stderr`, are normalised; below 0 is worse.

    `source`: posted here, or recorded as any score is.
    """

    checkpoint: CheckpointRef
    value: Number
    delta: float
    stderr: float
    items: int | None
    source: str
    probability_bad: float

    @classmethod
    def from_row(cls, row: Evaluation) -> Self:
        own = ("value", "delta", "stderr", "items", "source", "probability_bad")
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint), **{name: getattr(row, name) for name in own}
        )


class SkippedOut(Answer):
    """A score that is kept and does not count, since it lies outside the benchmark's scale."""

    checkpoint: CheckpointRef
    value: Number
    source: str
    why: str

    @classmethod
    def from_row(cls, row: Skipped) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint), value=row.value, source=row.source, why=row.why
        )


class BisectOut(Answer):
    """How a search stands. `next` null: it is over, or nothing that can be evaluated would tell more (`why`).

    `posterior`: every gap between neighbours that can be evaluated, in order; `gap` the likeliest; `credible`: the
    places in `posterior` of the shortest stretch of gaps that holds 95 %. `items`: for d' = 4 at a fall of `drop`,
    which takes n = psi (4/drop)^2; `benchmark_items`: how many there are, null where nobody said. `left_out`:
    checkpoints on the way that have neither a copy nor a score; `skipped`: kept scores that cannot count.
    """

    id: Id
    good: CheckpointRef
    bad: CheckpointRef
    benchmark: str | None
    metric: str | None
    filter: str | None
    capability: str | None
    benchmarks: list[str]
    drop: float
    discordance: float
    items: int
    benchmark_items: int | None
    next: NextOut | None
    posterior: list[GapOut]
    gap: GapOut
    credible: list[int]
    evaluations: list[EvaluationOut]
    left_out: int
    skipped: list[SkippedOut]
    done: bool
    why: str

    @classmethod
    def from_answer(cls, row: BisectAnswer) -> Self:
        named = row.target.capability is None
        benchmark, metric, filter = row.what if named else (None, None, None)
        return cls.model_construct(
            id=row.id,
            good=CheckpointRef.from_row(row.good),
            bad=CheckpointRef.from_row(row.bad),
            benchmark=benchmark,
            metric=metric,
            filter=filter,
            capability=row.target.capability,
            benchmarks=[row.what[0]] if named else list(row.what),
            next=row.next and NextOut.from_row(row.next),
            posterior=[GapOut.from_row(each) for each in row.posterior],
            gap=GapOut.from_row(row.gap),
            credible=list(row.credible),
            evaluations=[EvaluationOut.from_row(each) for each in row.evaluations],
            skipped=[SkippedOut.from_row(each) for each in row.skipped],
            benchmark_items=row.whole,
            **{name: getattr(row, name) for name in ("drop", "discordance", "items", "left_out", "done", "why")},
        )
