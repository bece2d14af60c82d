"""Read scores back: what counts now, and every result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import join_number
from registry.models import Benchmark, CurrentScore, Score, ScoreMetric, ScoreSeries


@dataclass(frozen=True)
class ScoreRow:
    """One eval result with everything that decides what it may be compared with."""

    checkpoint_id: int
    benchmark: str
    metric: str
    filter: str
    value: float | None
    stderr: float | None
    n_samples: int | None
    n_shot: int | None
    version: str | None
    harness: str | None
    harness_version: str | None
    evaluated_at: datetime | None
    comparability: Mapping[str, Any]
    series_id: int
    current: bool
    arrival: int


def list_scores(
    session: Session, project_id: int, checkpoint_ids: Sequence[int], *, every: bool = False
) -> list[ScoreRow]:
    """The scores of checkpoints, by benchmark and metric: those that count now, or `every` result, newest first."""
    query = _select(project_id, checkpoint_ids)
    rows = [
        ScoreRow(
            checkpoint_id=score.checkpoint_id,
            benchmark=benchmark,
            metric=metric.metric,
            filter=metric.filter,
            value=join_number(score.value, score.special),
            stderr=score.stderr,
            n_samples=series.n_samples,
            n_shot=series.n_shot,
            version=series.version,
            harness=series.harness,
            harness_version=series.harness_version,
            evaluated_at=score.evaluated_at,
            comparability=strict_json.loads(series.comparability.encode()),
            series_id=series.id,
            current=current is not None,
            arrival=score.arrival,
        )
        for score, series, metric, benchmark, current in session.execute(query)
    ]
    return rows if every else [row for row in rows if row.current]


def _select(project_id: int, checkpoint_ids: Sequence[int]) -> Select[Score, ScoreSeries, ScoreMetric, str, int]:
    return (
        select(Score, ScoreSeries, ScoreMetric, Benchmark.name, CurrentScore.arrival)
        .join(ScoreSeries, ScoreSeries.id == Score.series_id)
        .join(ScoreMetric, ScoreMetric.id == ScoreSeries.score_metric_id)
        .join(Benchmark, Benchmark.id == ScoreMetric.benchmark_id)
        .outerjoin(
            CurrentScore,
            (CurrentScore.project_id == Score.project_id)
            & (CurrentScore.checkpoint_id == Score.checkpoint_id)
            & (CurrentScore.score_metric_id == ScoreSeries.score_metric_id)
            & (CurrentScore.arrival == Score.arrival),
        )
        .where(Score.project_id == project_id, Score.checkpoint_id.in_(checkpoint_ids))
        .order_by(Benchmark.name, ScoreMetric.metric, ScoreMetric.filter, Score.checkpoint_id, Score.arrival.desc())
    )
