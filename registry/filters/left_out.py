"""What one choice of a metric for all projects leaves out: those that have the benchmark as another score only."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue
from registry.evals.project_table import ProjectTable
from registry.filters.score_names import Pairs, full_name, pairs_named, short_name
from registry.filters.tables import benchmark as benchmark_table
from registry.filters.tables import project


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Projects, by name, that have the benchmark as `scores` only: full names of scores, or that they have its parts.

    The first of them is the one that the benchmark table prefers.
    """

    scores: tuple[str, ...]
    projects: tuple[str, ...]


def asked_instead(left_out: Mapping[str, Sequence[LeftOut]], text: str, *, in_words: bool = False) -> str | None:
    """The question with the name of the score that most of those left out have; None where it does not hold the name.

    A question `in_words` writes `gsm8k` for `scores.gsm8k`.
    """
    changed = text
    for name, groups in left_out.items():
        holders: Counter[str] = Counter()
        for each in groups:
            named = [score for score in each.scores if score.startswith("scores.")]  # parts have no name of their own
            holders.update(dict.fromkeys(named, len(each.projects)))
        if not holders:
            continue
        other, own = short_name(holders.most_common(1)[0][0]), name
        if in_words:
            other, own = other.removeprefix("scores."), name.removeprefix("scores.")
        changed = re.sub(rf"(?<![\w.`-]){re.escape(own)}(?![\w`-]|\.\w)", other.replace("\\", r"\\"), changed)
    return changed if changed != text else None


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
    scores: dict[int, list[str]] = defaultdict(list)
    for benchmark in benchmarks:
        for project_id, pairs in _by_project(pairs_named(found.get(benchmark, {}), rest)).items():
            if project_id not in served:
                scores[project_id] += [
                    full_name(benchmark, *pair) for pair in _preferred_first(benchmark, pairs, table)
                ]
    instead = {each: tuple(names) for each, names in scores.items()}
    instead = {**_parts_only(session, benchmarks, table, {*served, *instead}, asked), **instead}
    if not instead:
        return ()
    named = session.execute(select(project.c.name, project.c.id).where(project.c.id.in_(instead)))
    projects: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, project_id in named:
        projects[instead[project_id]].append(name)
    most_first = sorted(projects.items(), key=lambda group: (-len(group[1]), group[0]))
    return tuple(LeftOut(names, tuple(sorted(holders))) for names, holders in most_first)


def _preferred_first(
    benchmark: str, pairs: Mapping[tuple[str, str], int], table: ProjectTable
) -> list[tuple[str, str]]:
    preferred = table.preferred_metric(benchmark, pairs)
    return sorted(pairs, key=lambda pair: (pair != preferred, pair))


def _parts_only(
    session: Session,
    benchmarks: Sequence[str],
    table: ProjectTable,
    known: Collection[int],
    asked: Collection[int] | None,
) -> dict[int, tuple[str, ...]]:
    """Of projects beyond the `known` ones that evaluated parts of the benchmark alone, such as subjects of mmlu."""
    whole = table.get(benchmarks[0])
    spellings = {name for part in catalogue().parts(whole.name) for name in (part.name, *part.aliases)} if whole else ()
    if whole is None or not spellings or (asked is not None and set(asked) <= set(known)):
        return {}
    query = select(benchmark_table.c.project_id).where(benchmark_table.c.name.in_(sorted(spellings))).distinct()
    if asked is not None:
        query = query.where(benchmark_table.c.project_id.in_(sorted(asked)))
    return {each: (f"parts of {whole.name}",) for each in session.scalars(query) if each not in known}


def _by_project(pairs: Pairs) -> dict[int, dict[tuple[str, str], int]]:
    found: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    for pair, series in pairs.items():
        for project_id, _ in series:
            found[project_id][pair] = 1
    return found
