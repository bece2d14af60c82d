"""Which score a name means: `scores.gsm8k` -> one (benchmark, metric, filter) for the whole query.

The name as results wrote it comes first; a name that occurs nowhere is read through the benchmark table's
aliases. Where metric or filter is left out, the table's first that occurs is taken; for a benchmark that the
table does not know the most frequent, then by name. One choice serves all projects, so a project that has the
benchmark by another metric only, or under another name, is left out: the choice names it.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.catalogue import key_of
from registry.evals.project_table import ProjectTable, read_project_table
from registry.filters.left_out import LeftOut, find_left_out
from registry.filters.print import field_to_text
from registry.filters.score_names import Pairs, full_name, pairs_named
from registry.filters.syntax import Field
from registry.filters.tables import benchmark as benchmark_table
from registry.filters.tables import current_score, score_metric


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """`series`: (project id, score_metric id), one for each project in which the metric occurs.

    `limits`: the lowest and the highest value that compare; None: all do (`registry.filters.mixed_scales`).
    """

    benchmark: str
    metric: str
    filter: str
    series: tuple[tuple[int, int], ...]
    left_out: tuple[LeftOut, ...] = ()
    limits: tuple[float, float] | None = None

    @property
    def text(self) -> str:
        """The full name, as a filter would write it."""
        return full_name(self.benchmark, self.metric, self.filter)

    def metric_ids(self, project_id: int | None = None) -> tuple[int, ...]:
        """Those of one project, or of all."""
        return tuple(metric_id for project, metric_id in self.series if project_id in (None, project))


def choose_scores(
    session: Session,
    project_ids: Collection[int] | None,
    names: Iterable[tuple[str, ...]],
    table: ProjectTable | None = None,
) -> dict[tuple[str, ...], ScoreChoice | None]:
    """The choice for each (benchmark[, metric[, filter]]) within the projects; None where nothing occurs.

    `table`: the benchmark table of the projects, where the caller has read it already.
    """
    wanted = list(dict.fromkeys(names))
    if not wanted:
        return {}
    table = table or read_project_table(session, project_ids)
    spellings = _spellings(session, project_ids, {name[0] for name in wanted}, table)
    found = _occurring(session, project_ids, set().union(*spellings.values()))
    aliases = _aliased(session, project_ids, {name[0] for name in wanted} - found.keys(), table)
    if aliases:
        found |= _occurring(session, project_ids, set(aliases.values()))
    choices: dict[tuple[str, ...], ScoreChoice | None] = {}
    for name in wanted:
        benchmark = aliases.get(name[0], name[0])
        choice = _choose(session, benchmark, found.get(benchmark, {}), name[1:], table)
        if choice is not None:
            served = {project_id for project_id, _ in choice.series}
            same = [benchmark, *sorted(spellings[name[0]] - {benchmark})]
            left_out = find_left_out(session, found, same, name[1:], table, served=served, asked=project_ids)
            choice = replace(choice, left_out=left_out)
        choices[name] = choice
    return choices


def _spellings(
    session: Session, project_ids: Collection[int] | None, names: Collection[str], table: ProjectTable
) -> dict[str, set[str]]:
    """For each name: itself, and where several projects are asked, what else they write for the same benchmark."""
    spellings = {name: {name} for name in names}
    if project_ids is not None and len(project_ids) < 2:
        return spellings
    used = session.scalars(_within(select(benchmark_table.c.name).distinct(), project_ids)).all()
    for name, same in spellings.items():
        known = table.get(name)
        keys = {key_of(each) for each in ((name,) if known is None else (name, known.name, *known.aliases))}
        same.update(each for each in used if key_of(each) in keys)
    return spellings


def left_out_of(choices: Mapping[tuple[str, ...], ScoreChoice | None]) -> dict[str, tuple[LeftOut, ...]]:
    """What each choice leaves out, by the name as a filter writes it."""
    return {
        field_to_text(Field(("scores", *name))): choice.left_out
        for name, choice in choices.items()
        if choice is not None and choice.left_out
    }


def _choose(
    session: Session, benchmark: str, pairs: Pairs, rest: tuple[str, ...], table: ProjectTable
) -> ScoreChoice | None:
    left = pairs_named(pairs, rest)
    if not left:
        return None
    counts = dict.fromkeys(left, 1)
    if len(left) > 1 and not table.decides(benchmark, left):
        counts = {pair: _frequency(session, series) for pair, series in left.items()}
    pair = table.preferred_metric(benchmark, counts)
    assert pair is not None
    return ScoreChoice(benchmark, *pair, tuple(sorted(left[pair])))


def _frequency(session: Session, series: list[tuple[int, int]]) -> int:
    """How many current scores a metric has; read from the index alone."""
    total = 0
    for project_id, metric_id in series:
        here = (current_score.c.project_id == project_id, current_score.c.score_metric_id == metric_id)
        total += session.scalar(select(func.count()).select_from(current_score).where(*here)) or 0
    return total


def _occurring(session: Session, project_ids: Collection[int] | None, names: set[str]) -> dict[str, Pairs]:
    query = _within(
        select(
            benchmark_table.c.name,
            score_metric.c.metric,
            score_metric.c.filter,
            score_metric.c.project_id,
            score_metric.c.id,
        ).join(
            score_metric,
            (score_metric.c.project_id == benchmark_table.c.project_id)
            & (score_metric.c.benchmark_id == benchmark_table.c.id),
        ),
        project_ids,
    ).where(benchmark_table.c.name.in_(sorted(names)))
    found: dict[str, Pairs] = defaultdict(lambda: defaultdict(list))
    for name, metric, filter, project_id, metric_id in session.execute(query):
        found[name][metric, filter].append((project_id, metric_id))
    return dict(found)


def _aliased(
    session: Session, project_ids: Collection[int] | None, names: set[str], table: ProjectTable
) -> dict[str, str]:
    """For each name that no result wrote: the one in use that means the same benchmark."""
    if not names:
        return {}
    scored = select(benchmark_table.c.name).join(score_metric, score_metric.c.benchmark_id == benchmark_table.c.id)
    used = sorted(set(session.scalars(_within(scored, project_ids).distinct())))
    same = {name: [other for other in used if table.identity(other) == table.identity(name)] for name in names}
    return {name: _best_spelling(name, others, table) for name, others in same.items() if others}


def _best_spelling(name: str, others: list[str], table: ProjectTable) -> str:
    known = table.get(name)
    return known.name if known and known.name in others else others[0]


def _within(query: Any, project_ids: Collection[int] | None) -> Any:
    return query if project_ids is None else query.where(benchmark_table.c.project_id.in_(sorted(project_ids)))
