"""Which score a name means: `scores.gsm8k` -> one (benchmark, metric, filter) for the whole query.

The name as results wrote it comes first; a name that occurs nowhere is read through the benchmark table's
aliases. Where metric or filter is left out, the table's first that occurs is taken; for a benchmark that the
table does not know the most frequent, then by name.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.project_table import ProjectTable, read_project_table
from registry.filters.print import field_to_text
from registry.filters.syntax import Field
from registry.filters.tables import benchmark as benchmark_table
from registry.filters.tables import current_score, score_metric

NO_NAME = "none"  # how a filter writes the empty metric or filter


@dataclass(frozen=True, slots=True)
class ScoreChoice:
    """`series`: (project id, score_metric id), one for each project in which the metric occurs."""

    benchmark: str
    metric: str
    filter: str
    series: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """The full name, as a filter would write it."""
        last = (self.metric or NO_NAME, self.filter or NO_NAME)
        return field_to_text(Field(("scores", self.benchmark, *last)))

    def metric_ids(self, project_id: int | None = None) -> tuple[int, ...]:
        """Those of one project, or of all."""
        return tuple(metric_id for project, metric_id in self.series if project_id in (None, project))


_Pairs = dict[tuple[str, str], list[tuple[int, int]]]


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
    found = _occurring(session, project_ids, {name[0] for name in wanted})
    aliases = _aliased(session, project_ids, {name[0] for name in wanted} - found.keys(), table)
    if aliases:
        found |= _occurring(session, project_ids, set(aliases.values()))
    choices: dict[tuple[str, ...], ScoreChoice | None] = {}
    for name in wanted:
        benchmark = aliases.get(name[0], name[0])
        choices[name] = _choose(session, benchmark, found.get(benchmark, {}), name[1:], table)
    return choices


def _choose(
    session: Session, benchmark: str, pairs: _Pairs, rest: tuple[str, ...], table: ProjectTable
) -> ScoreChoice | None:
    wanted = tuple("" if part == NO_NAME else part for part in rest)
    left = {pair: series for pair, series in pairs.items() if pair[: len(wanted)] == wanted}
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


def _occurring(session: Session, project_ids: Collection[int] | None, names: set[str]) -> dict[str, _Pairs]:
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
    found: dict[str, _Pairs] = defaultdict(lambda: defaultdict(list))
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
