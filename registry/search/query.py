"""Answer a search: which checkpoints are strong and weak where asked, on what evidence, among how many.

The arrays live in modules that are imported on the first search: a process that answers none does not load them.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import now as current_time
from registry.errors import Invalid
from registry.evals.references import PROJECT, find_reference
from registry.filters.query import CapabilityResolver
from registry.models import Run
from registry.projects import ProjectNotFound, find_project, list_projects
from registry.search.answers import SearchAnswer
from registry.search.conditions import FieldCondition, read_conditions, refuse_unknown_benchmarks
from registry.search.names import Names
from registry.search.parser import read_query
from registry.search.reading import ORDERS, Reading

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 1_000


class SearchRefused(Invalid):
    code = "invalid-search"
    title = "The search could not be made"


def search_checkpoints(
    session: Session,
    *,
    project_ids: Collection[int] | None,
    query: str | None = None,
    conditions: Sequence[Any] | None = None,
    like: int | None = None,
    project: str | None = None,
    order: str | None = None,
    population: str = PROJECT,
    limit: int = DEFAULT_LIMIT,
    now: datetime | None = None,
) -> SearchAnswer:
    """The checkpoints that a question, or conditions in their JSON form, asks for; best first.

    `like` is a checkpoint: then those with the same strengths and weaknesses, of its own project. `order` puts the
    newest, the oldest, the smallest model or the lowest loss of those that meet everything first, as the words of a
    question may. `population`: whom percentiles are among, the project's checkpoints or a published reference
    ('reference:pythia').

    `project_ids` bounds what the caller may see (None: everything), `project` names one of them. Superseded,
    pending and deleted checkpoints are never found. A project that the question itself names bounds it too.
    Raises UnreadableQuery, InvalidConditions, SearchRefused, InvalidFilter, UnknownPopulation, ProjectNotFound.
    """
    if sum(each is not None for each in (query, conditions, like)) != 1:
        raise SearchRefused("Send one of these: a query in words, a list of conditions, or like, a checkpoint.")
    if order is not None and order not in ORDERS:
        raise SearchRefused(f"order is one of {', '.join(ORDERS)}, not {order[:40]!r}.")
    if not 1 <= limit <= MAX_LIMIT:
        raise SearchRefused(f"limit must be from 1 to {MAX_LIMIT}, not {limit}.")
    reference = find_reference(population)
    scope = _scope(session, project_ids, project)
    if like is not None:
        from registry.search.likeness import more_like

        return more_like(session, scope, like, limit=limit)
    if query is not None:
        reading = read_query(query, now=now or current_time(), known=Names(session, scope, query))
    else:
        reading = Reading(read_conditions(conditions or ()), ())
        refuse_unknown_benchmarks(session, scope, reading.conditions)
    if order is not None:
        reading = replace(reading, order=order)
    from registry.search.answering import answer

    return answer(session, _narrowed(session, scope, reading) if project is None else scope, reading, limit, reference)


def _narrowed(session: Session, scope: Collection[int], reading: Reading) -> Collection[int]:
    """The one project that the conditions name, or whose run they name, as if it had been chosen: percentiles are
    among its checkpoints."""
    named = [each for each in reading.conditions if isinstance(each, FieldCondition) and each.relation == "="]
    names = {each.threshold for each in named if each.field == "project"}
    if len(names) == 1:
        return [row.id for row in list_projects(session, scope) if row.name in names] or scope
    runs = {each.threshold for each in named if each.field == "run.name"}
    if names or len(runs) != 1:
        return scope
    holders = session.scalars(select(Run.project_id).distinct().where(Run.name.in_(runs), Run.project_id.in_(scope)))
    found = holders.all()
    return found if len(found) == 1 else scope


def capability_resolver(session: Session, project_ids: Collection[int] | None) -> CapabilityResolver:
    """The percentiles that the filter language calls `capabilities.<name>`; None where the population is too small."""

    def resolve(name: str, within: Collection[int] | None = None, /) -> Mapping[int, float] | None:
        from registry.search.answering import percentiles_of

        return percentiles_of(session, _scope(session, project_ids if within is None else within, None), name)

    return resolve


def _scope(session: Session, project_ids: Collection[int] | None, project: str | None) -> Collection[int]:
    """The projects by their ids, for every index of scores begins with the project."""
    if project is None:
        return [row.id for row in list_projects(session)] if project_ids is None else project_ids
    found = find_project(session, project)
    if project_ids is not None and found.id not in project_ids:
        raise ProjectNotFound(f"There is no project {project[:128]!r} that this token can read.")
    return [found.id]
