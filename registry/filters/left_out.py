"""What one choice of a metric for all projects leaves out: those that have the benchmark as another score only."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue
from registry.evals.project_table import ProjectTable
from registry.filters.score_names import Pairs, full_name, pairs_named
from registry.filters.tables import benchmark as benchmark_table
from registry.filters.tables import project


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Projects, by name, that have the benchmark as `text` only: a score, or its parts."""

    text: str
    projects: tuple[str, ...]


def find_left_out(
    session: Session,
    found: Mapping[str, Pairs],
    benchmarks: Sequence[str],
    rest: tuple[str, ...],
    table: ProjectTable,
    *,
    served: Collection[int],
    asked: Collection[int] | None,
) -> tuple[LeftOut, ...]:
    """The projects beside `served` in which one of `benchmarks`, names of the same one, was scored, or parts of it.

    `asked`: the projects that the query is about; None: all.
    """
    instead: dict[int, str] = {}
    for benchmark in benchmarks:
        for project_id, pairs in _by_project(pairs_named(found.get(benchmark, {}), rest)).items():
            pair = table.preferred_metric(benchmark, pairs)
            if project_id not in served and pair is not None:
                instead.setdefault(project_id, full_name(benchmark, *pair))
    instead = {**_parts_only(session, benchmarks, table, {*served, *instead}, asked), **instead}
    if not instead:
        return ()
    named = session.execute(select(project.c.name, project.c.id).where(project.c.id.in_(instead)))
    projects: dict[str, list[str]] = defaultdict(list)
    for name, project_id in named:
        projects[instead[project_id]].append(name)
    return tuple(LeftOut(text, tuple(sorted(names))) for text, names in sorted(projects.items()))


def _parts_only(
    session: Session,
    benchmarks: Sequence[str],
    table: ProjectTable,
    known: Collection[int],
    asked: Collection[int] | None,
) -> dict[int, str]:
    """Of projects beyond the `known` ones that evaluated parts of the benchmark alone, such as subjects of mmlu."""
    whole = table.get(benchmarks[0])
    spellings = {name for part in catalogue().parts(whole.name) for name in (part.name, *part.aliases)} if whole else ()
    if whole is None or not spellings or (asked is not None and set(asked) <= set(known)):
        return {}
    query = select(benchmark_table.c.project_id).where(benchmark_table.c.name.in_(sorted(spellings))).distinct()
    if asked is not None:
        query = query.where(benchmark_table.c.project_id.in_(sorted(asked)))
    return {each: f"parts of {whole.name}" for each in session.scalars(query) if each not in known}


def _by_project(pairs: Pairs) -> dict[int, dict[tuple[str, str], int]]:
    found: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for pair, series in pairs.items():
        for project_id, _ in series:
            found[project_id][pair] = 1
    return found
