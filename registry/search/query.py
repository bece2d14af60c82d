"""Answer a search: which checkpoints are strong and weak where asked, on what evidence, among how many.

The arrays live in modules that are imported on the first search: a process that answers none does not load them.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy.orm import Session

from registry.db import now as current_time
from registry.errors import Invalid
from registry.filters.query import CapabilityResolver
from registry.projects import ProjectNotFound, find_project, list_projects
from registry.search.answers import SearchAnswer
from registry.search.conditions import FieldCondition, read_conditions
from registry.search.names import Names
from registry.search.parser import Reading, read_query

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
    project: str | None = None,
    limit: int = DEFAULT_LIMIT,
    now: datetime | None = None,
) -> SearchAnswer:
    """The checkpoints that a question, or conditions in their JSON form, asks for; best first.

    `project_ids` bounds what the caller may see (None: everything), `project` names one of them. Superseded,
    pending and deleted checkpoints are never found. A project that the question itself names bounds it too.
    Raises UnreadableQuery, InvalidConditions, SearchRefused, InvalidFilter, ProjectNotFound.
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

    return answer(session, _narrowed(session, scope, reading) if project is None else scope, reading, limit)


def _narrowed(session: Session, scope: Collection[int], reading: Reading) -> Collection[int]:
    """The one project that the conditions name, as if it had been chosen: percentiles are among its checkpoints."""
    terms = [each for each in reading.conditions if isinstance(each, FieldCondition) and each.field == "project"]
    names = {each.threshold for each in terms if each.relation == "="}
    if len(names) != 1:
        return scope
    return [row.id for row in list_projects(session, scope) if row.name in names] or scope


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
