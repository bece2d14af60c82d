"""What one choice of a metric for all projects leaves out: those that have the benchmark as another score only."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.project_table import ProjectTable
from registry.filters.score_names import Pairs, full_name, pairs_named
from registry.filters.tables import project


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Projects, by name, that have the benchmark as the score `text` only, by which they can be asked."""

    text: str
    projects: tuple[str, ...]


def find_left_out(
    session: Session,
    found: Mapping[str, Pairs],
    benchmarks: Iterable[str],
    rest: tuple[str, ...],
    table: ProjectTable,
    *,
    served: Collection[int],
) -> tuple[LeftOut, ...]:
    """The projects beside `served` in which one of `benchmarks`, names of the same one, was scored."""
    instead: dict[int, str] = {}
    for benchmark in benchmarks:
        for project_id, pairs in _by_project(pairs_named(found.get(benchmark, {}), rest)).items():
            pair = table.preferred_metric(benchmark, pairs)
            if project_id not in served and pair is not None:
                instead.setdefault(project_id, full_name(benchmark, *pair))
    if not instead:
        return ()
    named = session.execute(select(project.c.name, project.c.id).where(project.c.id.in_(instead)))
    projects: dict[str, list[str]] = defaultdict(list)
    for name, project_id in named:
        projects[instead[project_id]].append(name)
    return tuple(LeftOut(text, tuple(sorted(names))) for text, names in sorted(projects.items()))


def _by_project(pairs: Pairs) -> dict[int, dict[tuple[str, str], int]]:
    found: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for pair, series in pairs.items():
        for project_id, _ in series:
            found[project_id][pair] = 1
    return found
