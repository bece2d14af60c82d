"""Shapes of a project's benchmark table."""

from typing import Annotated, Literal, Self

from pydantic import Field

from api.schemas.common import Answer, Finite, Name, Positive, Shape, Text
from registry.evals.table.flags import MetricRange
from registry.evals.table.listing import BenchmarkEntry

# (metric, filter); '' is none.
Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
Metrics = Annotated[list[Pair], Field(max_length=20)]
Direction = Literal["higher", "lower", "target"]
Scale = Literal["fraction", "percent", "ten", "raw", "log"]


class BenchmarkIn(Shape):
    """What the project says of a benchmark. Null or left out: the shipped table says it.

    `capability` "" puts it in none. `chance` is the score of guessing, in the scale of the benchmark.
    `preferred_metrics` are pairs of metric and filter, the first that occurs is read. `same_as` is the benchmark of the
    table that this is another name for; `aliases` are other names that results write for this one.
    """

    capability: Text | None = None
    direction: Direction | None = None
    scale: Scale | None = None
    chance: Finite | None = None
    sample_count: Positive | None = None
    preferred_metrics: Metrics | None = None
    same_as: Name | None = None
    note: Text | None = None
    aliases: Annotated[list[Name], Field(max_length=50)] | None = None


class MetricRangeOut(Answer):
    """A metric that results have, with the least and the greatest finite value that counts."""

    metric: str
    filter: str
    low: float | None
    high: float | None

    @classmethod
    def from_row(cls, row: MetricRange) -> Self:
        return cls.model_construct(metric=row.metric, filter=row.filter, low=row.low, high=row.high)


class ProposalOut(Answer):
    """How it could be mapped, and why. It is never applied by itself."""

    same_as: str | None
    capability: str | None
    scale: str | None
    reason: str


class BenchmarkEntryOut(Answer):
    """`own`: the fields that the project says. `occurring`: metrics of recorded results. `flags`: what looks wrong."""

    name: str
    capability: str | None
    direction: str
    scale: str
    chance: float | None
    sample_count: int | None
    preferred_metrics: list[list[str]]
    family: str
    part_of: str | None
    note: str
    aliases: list[str]
    same_as: str | None
    shipped: bool
    own: list[str]
    occurring: list[MetricRangeOut]
    flags: list[str]
    needs_mapping: bool
    proposal: ProposalOut | None

    @classmethod
    def from_entry(cls, row: BenchmarkEntry) -> Self:
        proposal = row.proposal
        plain = (
            *("name", "capability", "direction", "scale", "chance", "sample_count", "family", "part_of", "note"),
            *("same_as", "shipped", "needs_mapping"),
        )
        return cls.model_construct(
            preferred_metrics=[list(pair) for pair in row.metrics],
            aliases=list(row.aliases),
            own=list(row.own),
            occurring=[MetricRangeOut.from_row(each) for each in row.occurring],
            flags=list(row.flags),
            proposal=None
            if proposal is None
            else ProposalOut.model_construct(
                same_as=proposal.same_as,
                capability=proposal.capability,
                scale=proposal.scale,
                reason=proposal.reason,
            ),
            **{name: getattr(row, name) for name in plain},
        )


class BenchmarkPage(Answer):
    items: list[BenchmarkEntryOut]
    next_cursor: str | None
