"""Answer a search: which checkpoints are strong and weak where asked, on what evidence, among how many.

The arrays live in modules that are imported on the first search: a process that answers none does not load them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity
from registry.db import now as current_time
from registry.errors import Invalid
from registry.filters.query import CapabilityResolver
from registry.projects import ProjectNotFound, find_project, list_projects
from registry.search.conditions import Condition, read_conditions
from registry.search.names import Names
from registry.search.parser import Reading, read_query

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 1_000


class SearchRefused(Invalid):
    code = "invalid-search"
    title = "The search could not be made"


@dataclass(frozen=True, slots=True)
class BenchmarkEvidence:
    """A score that the answer rests on. `parts`: it is the mean of so many subtasks; `via`: of a lossless copy."""

    benchmark: str
    metric: str
    filter: str
    value: float
    percentile: float | None
    parts: int = 0
    via: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of one condition. All None and no benchmarks: not evaluated, which is not weak.

    `percentile` is a fraction from 0 to 1 among those evaluated; `basis` says whether it was held against the condition
    or, in a population too small for percentiles (`absolute`), the chance-normalised `composite` was.
    """

    condition: Condition
    capability: str | None
    percentile: float | None
    composite: float | None
    coverage: float
    basis: str
    met: bool
    benchmarks: tuple[BenchmarkEvidence, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`score`: the least over the conditions, 1 at best. `on_front`: no other is better in one and as good in all.

    `same_run`: the ids of other results that are of the same run.
    """

    checkpoint: CheckpointIdentity
    score: float
    on_front: bool
    evidence: tuple[Evidence, ...]
    same_run: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CapabilityPopulation:
    capability: str
    size: int
    runs: int
    basis: str


@dataclass(frozen=True, slots=True)
class Population:
    """Whom the results were ranked among. `of_size`: those of the model size that the query names, not all."""

    size: int
    capabilities: tuple[CapabilityPopulation, ...] = ()
    of_size: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interpretation:
    """How the query was understood. `resolved`: for each benchmark, the metric and filter that were read."""

    conditions: tuple[Condition, ...]
    unparsed: tuple[str, ...]
    resolved: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """`strict`: the results meet every condition; otherwise they are the nearest.

    `incomplete`: meet what could be checked, and were never evaluated on the rest. They are no results.
    """

    interpretation: Interpretation
    population: Population
    strict: bool
    results: tuple[SearchResult, ...]
    incomplete: tuple[SearchResult, ...] = ()


def search_checkpoints(
    session: Session,
    *,
    project_ids: Collection[int] | None,
    query: str | None = None,
    conditions: Sequence[Any] | None = None,
    project: str | None = None,
    limit: int = DEFAULT_LIMIT,
    now: datetime | None = None,
) -> SearchAnswer:
    """The checkpoints that a question, or conditions in their JSON form, asks for; best first.

    `project_ids` bounds what the caller may see (None: everything), `project` names one of them. Superseded, pending
    and deleted checkpoints are never found. Raises UnreadableQuery, InvalidConditions, SearchRefused, InvalidFilter,
    ProjectNotFound.
    """
    if (query is None) == (conditions is None):
        raise SearchRefused("Send either a query in words or a list of conditions, and not both.")
    if not 1 <= limit <= MAX_LIMIT:
        raise SearchRefused(f"limit must be from 1 to {MAX_LIMIT}, not {limit}.")
    scope = _scope(session, project_ids, project)
    if query is not None:
        reading = read_query(query, now=now or current_time(), known=Names(session, scope, query))
    else:
        reading = Reading(read_conditions(conditions or ()), ())
    from registry.search.answering import answer

    return answer(session, scope, reading, limit)


def capability_resolver(session: Session, project_ids: Collection[int] | None) -> CapabilityResolver:
    """The percentiles that the filter language calls `capabilities.<name>`; None where the population is too small."""

    def resolve(name: str) -> Mapping[int, float] | None:
        from registry.search.answering import percentiles_of

        return percentiles_of(session, _scope(session, project_ids, None), name)

    return resolve


def _scope(session: Session, project_ids: Collection[int] | None, project: str | None) -> Collection[int]:
    """The projects by their ids, for every index of scores begins with the project."""
    if project is None:
        return [row.id for row in list_projects(session)] if project_ids is None else project_ids
    found = find_project(session, project)
    if project_ids is not None and found.id not in project_ids:
        raise ProjectNotFound(f"There is no project {project[:128]!r} that this token can read.")
    return [found.id]
