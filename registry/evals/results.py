"""Read eval results back: every result of some checkpoints, with all that makes two of them comparable."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import join_number, to_micros
from registry.evals.project_table import ProjectTable, read_project_table
from registry.models import Benchmark as BenchmarkRow
from registry.models import LineageEdge, Score, ScoreMetric, ScoreSeries
from registry.types import LOSSLESS

MAX_COPIES: Final = 200  # lossless copies of one checkpoint whose evaluations count for it
ScoreKey = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class EvalResult:
    """One evaluation result as it is recorded, with everything that two must share to be compared. NaN is a value."""

    benchmark: str
    metric: str
    filter: str
    value: float
    stderr: float | None = None
    n_samples: int | None = None
    n_shot: int | None = None
    version: str | None = None
    harness: str | None = None
    harness_version: str | None = None
    comparability: Mapping[str, Any] = field(default_factory=dict)
    via: int | None = None  # the lossless copy that was evaluated in this checkpoint's place

    @property
    def key(self) -> ScoreKey:
        return self.benchmark, self.metric, self.filter


Readings = ProjectTable  # how the figures of a project's benchmarks read


def results_of(
    session: Session, project_id: int, checkpoint_ids: Sequence[int]
) -> tuple[dict[int, list[EvalResult]], Readings]:
    """For each checkpoint its newest result of every series, newest first, and how to read them.

    Results of lossless copies (converted, resharded) count for it, after its own, marked with `via`.
    """
    stands_for = lossless_copies(session, project_id, checkpoint_ids)
    query = (
        select(Score, ScoreSeries, ScoreMetric, BenchmarkRow.name)
        .join(ScoreSeries, (ScoreSeries.project_id == Score.project_id) & (ScoreSeries.id == Score.series_id))
        .join(
            ScoreMetric,
            (ScoreMetric.project_id == Score.project_id) & (ScoreMetric.id == ScoreSeries.score_metric_id),
        )
        .join(
            BenchmarkRow,
            (BenchmarkRow.project_id == Score.project_id) & (BenchmarkRow.id == ScoreMetric.benchmark_id),
        )
        .where(Score.project_id == project_id, Score.checkpoint_id.in_(sorted(stands_for)))
    )
    newest: dict[tuple[int, int], tuple[tuple[bool, int, int], EvalResult]] = {}
    for score, series, metric, benchmark in session.execute(query):
        for checkpoint_id in stands_for[score.checkpoint_id]:
            via = None if checkpoint_id == score.checkpoint_id else score.checkpoint_id
            at = 0 if score.evaluated_at is None else to_micros(score.evaluated_at)
            order = (via is None, at, score.arrival)
            key = (checkpoint_id, score.series_id)
            if key not in newest or order > newest[key][0]:
                newest[key] = (order, _row(score, series, metric, benchmark, via))
    found: dict[int, list[EvalResult]] = {checkpoint_id: [] for checkpoint_id in checkpoint_ids}
    for (checkpoint_id, _), (_, row) in sorted(newest.items(), key=lambda item: item[1][0], reverse=True):
        found[checkpoint_id].append(row)
    return found, read_project_table(session, [project_id])


@lru_cache(maxsize=4096)
def _conditions(text: str) -> Mapping[str, Any]:
    """What else two results must share; the same few texts stand behind thousands of scores."""
    found: Mapping[str, Any] = strict_json.loads(text.encode())
    return found


def _row(score: Score, series: ScoreSeries, metric: ScoreMetric, benchmark: str, via: int | None) -> EvalResult:
    value = join_number(score.value, score.special)
    assert value is not None  # a score always has one
    return EvalResult(
        benchmark=benchmark,
        metric=metric.metric,
        filter=metric.filter,
        value=value,
        stderr=score.stderr,
        n_samples=series.n_samples,
        n_shot=series.n_shot,
        version=series.version,
        harness=series.harness,
        harness_version=series.harness_version,
        comparability=_conditions(series.comparability),
        via=via,
    )


def lossless_copies(session: Session, project_id: int, checkpoint_ids: Sequence[int]) -> dict[int, set[int]]:
    """For each checkpoint with the same weights as one of these, itself included: the ones it stands for."""
    stands_for = {checkpoint_id: {checkpoint_id} for checkpoint_id in checkpoint_ids}
    level = set(checkpoint_ids)
    while level and len(stands_for) < MAX_COPIES:
        query = select(LineageEdge.child_id, LineageEdge.parent_id).where(
            LineageEdge.project_id == project_id,
            LineageEdge.parent_project_id == project_id,
            LineageEdge.relation.in_([relation.value for relation in LOSSLESS]),
            or_(LineageEdge.child_id.in_(sorted(level)), LineageEdge.parent_id.in_(sorted(level))),
        )
        reached: set[int] = set()
        for child, parent in session.execute(query.limit(MAX_COPIES)):
            for here, there in ((child, parent), (parent, child)):
                if here in stands_for and not stands_for[here] <= stands_for.get(there, set()):
                    stands_for.setdefault(there, set()).update(stands_for[here])
                    reached.add(there)
        level = reached
    return stands_for
