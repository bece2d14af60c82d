"""Which columns of scores there are: every (benchmark, metric, filter) of some projects, and how its figures read."""

from collections.abc import Collection

from sqlalchemy import and_, select
from sqlalchemy.orm import Session

from registry.evals.columns import Column
from registry.evals.project_table import ProjectTable, read_project_table
from registry.models import Benchmark as BenchmarkRow
from registry.models import ScoreMetric

MetricIds = dict[int, int]  # score_metric id -> the place of its column


def read_columns(
    session: Session, project_ids: Collection[int] | None, table: ProjectTable | None = None
) -> tuple[tuple[Column, ...], MetricIds]:
    """Every (benchmark, metric, filter) that occurs in the projects (None: all), with what the projects say of it."""
    table = table or read_project_table(session, project_ids)
    query = select(ScoreMetric.id, BenchmarkRow.name, ScoreMetric.metric, ScoreMetric.filter).join(
        BenchmarkRow,
        and_(BenchmarkRow.project_id == ScoreMetric.project_id, BenchmarkRow.id == ScoreMetric.benchmark_id),
    )
    if project_ids is not None:
        query = query.where(ScoreMetric.project_id.in_(sorted(project_ids)))
    places: dict[tuple[str, str, str], int] = {}
    columns: list[Column] = []
    metric_ids: MetricIds = {}
    for row in session.execute(query.order_by(ScoreMetric.project_id, ScoreMetric.id)):
        key = (row.name, row.metric, row.filter)
        if key not in places:
            places[key] = len(columns)
            columns.append(Column(*key, table.for_metric(*key)))
        metric_ids[row.id] = places[key]
    return tuple(columns), metric_ids
