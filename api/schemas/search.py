"""Shapes of search and profile."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints

from api.schemas.common import NO_NUL, Answer, CheckpointRef, FreeObject, Id, LeftOutProjects, Number, Shape, ShortName
from registry.evals.profile import CapabilityStanding, Profile
from registry.search.answers import BenchmarkEvidence, Evidence, Population, SearchAnswer, SearchResult
from registry.search.conditions import to_json

Query = Annotated[str, StringConstraints(min_length=1, max_length=2_000, pattern=NO_NUL)]
# 'project', or a published reference such as 'reference:pythia'.
PopulationName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=NO_NUL)]
# Each condition is read, and refused with its own pointer, by registry.search.conditions.
Conditions = Annotated[list[FreeObject], Field(max_length=100)]


class SearchIn(Shape):
    """A question in words, or conditions, each on a capability, a benchmark or a field; or `like`, a checkpoint.

    `like` finds those with the same strengths and weaknesses. `order` puts the newest, the oldest, the smallest
    model or the lowest loss first among those that meet everything. `population` is whom percentiles are among: the
    `project`, or `reference:pythia`, published figures for one large run that has nobody to be ranked among.

    `{"capability": "math", "relation": "strong", "threshold": 0.8}`, `{"benchmark": "gsm8k", "relation": ">=", …}`.
    """

    query: Query | None = None
    conditions: Conditions | None = None
    like: Id | None = None
    project: ShortName | None = None
    order: Literal["match", "newest", "oldest", "lowest_loss", "smallest"] | None = None
    population: PopulationName = "project"
    limit: Annotated[int, Field(ge=1, le=1_000)] = 20


class InterpretationOut(Answer):
    """How a question was understood. `at_most`: how many results it asks for, as 'top 3' does."""

    conditions: list[dict[str, Any]]
    unparsed: list[str]
    resolved: dict[str, str | None]
    order: str
    left_out: dict[str, list[LeftOutProjects]]
    at_most: int | None


class CapabilityPopulationOut(Answer):
    capability: str
    size: int
    runs: int
    basis: str


class PopulationOut(Answer):
    """Whom the results were ranked among."""

    size: int
    capabilities: list[CapabilityPopulationOut]
    of_size: bool
    warnings: list[str]
    reference: str | None

    @classmethod
    def from_population(cls, row: Population) -> Self:
        return cls.model_construct(
            size=row.size,
            capabilities=[
                CapabilityPopulationOut.model_construct(
                    capability=each.capability, size=each.size, runs=each.runs, basis=each.basis
                )
                for each in row.capabilities
            ],
            of_size=row.of_size,
            warnings=list(row.warnings),
            reference=row.reference,
        )


class BenchmarkOut(Answer):
    """A score that the answer rests on. `via`: that of a lossless copy; `parts`: the mean of so many subtasks."""

    benchmark: str
    metric: str
    filter: str
    value: Number
    percentile: float | None
    parts: int
    via: bool

    @classmethod
    def from_evidence(cls, row: BenchmarkEvidence) -> Self:
        return cls.model_construct(**{name: getattr(row, name) for name in cls.model_fields})


class EvidenceOut(Answer):
    """What is known of one condition. No percentile and no benchmarks: not evaluated, which is not weak."""

    condition: dict[str, Any]
    capability: str | None
    percentile: float | None
    composite: float | None
    coverage: float
    basis: str
    met: bool
    benchmarks: list[BenchmarkOut]

    @classmethod
    def from_evidence(cls, row: Evidence) -> Self:
        own = ("capability", "percentile", "composite", "coverage", "basis", "met")
        return cls.model_construct(
            condition=to_json(row.condition),
            benchmarks=[BenchmarkOut.from_evidence(each) for each in row.benchmarks],
            **{name: getattr(row, name) for name in own},
        )


class ResultOut(Answer):
    """`score`: the least over the conditions, 1 at best. `same_run`: other results of its run. `loss`: as recorded."""

    checkpoint: CheckpointRef
    score: float
    on_front: bool
    evidence: list[EvidenceOut]
    same_run: list[Id]
    loss: Number | None

    @classmethod
    def from_result(cls, row: SearchResult) -> Self:
        return cls.model_construct(
            checkpoint=CheckpointRef.from_row(row.checkpoint),
            score=row.score,
            on_front=row.on_front,
            evidence=[EvidenceOut.from_evidence(each) for each in row.evidence],
            same_run=list(row.same_run),
            loss=row.loss,
        )


class SearchOut(Answer):
    """`strict`: the results meet every condition, else they are nearest. `incomplete`: never evaluated on a part."""

    interpretation: InterpretationOut
    population: PopulationOut
    strict: bool
    results: list[ResultOut]
    incomplete: list[ResultOut]

    @classmethod
    def from_answer(cls, row: SearchAnswer) -> Self:
        said = row.interpretation
        return cls.model_construct(
            interpretation=InterpretationOut.model_construct(
                conditions=[to_json(condition) for condition in said.conditions],
                unparsed=list(said.unparsed),
                resolved=dict(said.resolved),
                order=said.order,
                left_out=LeftOutProjects.by_name(said.left_out),
                at_most=said.at_most,
            ),
            population=PopulationOut.from_population(row.population),
            strict=row.strict,
            results=[ResultOut.from_result(each) for each in row.results],
            incomplete=[ResultOut.from_result(each) for each in row.incomplete],
        )


class ProfileScoreOut(Answer):
    benchmark: str
    metric: str
    filter: str
    value: Number
    stderr: float | None
    percentile: float | None
    parts: int
    via: bool
    off_scale: bool


class StandingOut(Answer):
    """`percentile`: among the live checkpoints of the project, null where not evaluated or where those are too few."""

    capability: str
    title: str
    title_zh: str
    percentile: float | None
    percentile_for_size: float | None
    composite: float | None
    coverage: float
    population_size: int
    population_runs: int
    benchmarks: list[ProfileScoreOut]
    warning: str | None

    @classmethod
    def from_row(cls, row: CapabilityStanding) -> Self:
        own = [name for name in cls.model_fields if name != "benchmarks"]
        return cls.model_construct(
            benchmarks=[
                ProfileScoreOut.model_construct(**{name: getattr(each, name) for name in ProfileScoreOut.model_fields})
                for each in row.benchmarks
            ],
            **{name: getattr(row, name) for name in own},
        )


class ProfileOut(Answer):
    """`not_evaluated`: capabilities without a score here. `unknown`: benchmarks that no capability claims."""

    checkpoint: CheckpointRef
    capabilities: list[StandingOut]
    not_evaluated: list[str]
    unknown: list[str]
    population: str
    reference: str | None

    @classmethod
    def from_profile(cls, row: Profile, checkpoint: CheckpointRef) -> Self:
        return cls.model_construct(
            checkpoint=checkpoint,
            capabilities=[StandingOut.from_row(each) for each in row.capabilities],
            not_evaluated=list(row.not_evaluated),
            unknown=list(row.unknown),
            population=row.population,
            reference=row.reference,
        )
