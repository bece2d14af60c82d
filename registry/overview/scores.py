"""The scores of a run over its steps."""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.db import join_number
from registry.models import Attempt, Benchmark, Checkpoint, CurrentScore, ScoreMetric
from registry.types import CheckpointState


@dataclass(frozen=True, slots=True)
class MetricName:
    """What a score measures; metric and filter are '' where there is none."""

    id: int
    benchmark: str
    metric: str
    filter: str
    count: int = 0


@dataclass(frozen=True, slots=True)
class RunScore:
    """A current score of a run's checkpoint. A non-finite value is a float.

    `via`: the lossless copy that it was measured on, where it is not of the checkpoint itself.
    """

    metric_id: int
    checkpoint_id: int
    attempt: int
    step: int
    superseded: bool
    value: float | None
    stderr: float | None
    via: int | None = None


def metrics_of_run(session: Session, project_id: int, run_id: int) -> list[MetricName]:
    """What the checkpoints of a run were evaluated on, the most often evaluated first, then by name."""
    amount = func.count().label("amount")
    query = (
        select(ScoreMetric.id, Benchmark.name, ScoreMetric.metric, ScoreMetric.filter, amount)
        .join(CurrentScore, CurrentScore.score_metric_id == ScoreMetric.id)
        .join(Checkpoint, Checkpoint.id == CurrentScore.checkpoint_id)
        .join(Benchmark, Benchmark.id == ScoreMetric.benchmark_id)
        .where(
            CurrentScore.project_id == project_id,
            Checkpoint.project_id == project_id,
            Checkpoint.run_id == run_id,
            Checkpoint.state != CheckpointState.DELETED.value,
        )
        .group_by(ScoreMetric.id, Benchmark.name, ScoreMetric.metric, ScoreMetric.filter)
        .order_by(amount.desc(), Benchmark.name, ScoreMetric.metric, ScoreMetric.filter)
    )
    return [MetricName(*row) for row in session.execute(query)]


def scores_of_run(
    session: Session, project_id: int, run_id: int, metric_ids: Collection[int] | None = None
) -> list[RunScore]:
    """The current scores of a run's checkpoints, in the order of (attempt, step); `metric_ids` None means all."""
    query = (
        select(
            CurrentScore.score_metric_id,
            CurrentScore.checkpoint_id,
            Checkpoint.attempt_number,
            Checkpoint.step,
            Attempt.live_through_step,
            CurrentScore.value,
            CurrentScore.special,
            CurrentScore.stderr,
            CurrentScore.via_checkpoint_id,
        )
        .join(Checkpoint, Checkpoint.id == CurrentScore.checkpoint_id)
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(
            CurrentScore.project_id == project_id,
            Checkpoint.project_id == project_id,
            Checkpoint.run_id == run_id,
            Checkpoint.state != CheckpointState.DELETED.value,
        )
        .order_by(Checkpoint.attempt_number, Checkpoint.step, Checkpoint.kind)
    )
    if metric_ids is not None:
        query = query.where(CurrentScore.score_metric_id.in_(metric_ids))
    return [
        RunScore(
            metric,
            checkpoint,
            attempt,
            step,
            live is not None and step > live,
            join_number(value, special),
            stderr,
            via,
        )
        for metric, checkpoint, attempt, step, live, value, special, stderr, via in session.execute(query)
    ]


def count_scores(session: Session, project_id: int, checkpoint_ids: Collection[int]) -> dict[int, int]:
    """How many metrics each checkpoint has a current score of; those without any are left out."""
    query = (
        select(CurrentScore.checkpoint_id, func.count())
        .where(CurrentScore.project_id == project_id, CurrentScore.checkpoint_id.in_(checkpoint_ids))
        .group_by(CurrentScore.checkpoint_id)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def lent_scores(
    session: Session, project_id: int, checkpoint_ids: Collection[int]
) -> dict[int, dict[tuple[str, str, str], int]]:
    """By checkpoint, its scores that were measured on a lossless copy: (benchmark, metric, filter) to the copy's id."""
    query = (
        select(
            CurrentScore.checkpoint_id,
            Benchmark.name,
            ScoreMetric.metric,
            ScoreMetric.filter,
            CurrentScore.via_checkpoint_id,
        )
        .join(ScoreMetric, ScoreMetric.id == CurrentScore.score_metric_id)
        .join(Benchmark, Benchmark.id == ScoreMetric.benchmark_id)
        .where(
            CurrentScore.project_id == project_id,
            CurrentScore.checkpoint_id.in_(checkpoint_ids),
            CurrentScore.via_checkpoint_id.is_not(None),
        )
    )
    found: dict[int, dict[tuple[str, str, str], int]] = {}
    for checkpoint_id, benchmark, metric, filter, via in session.execute(query):
        assert via is not None  # asked for above
        found.setdefault(checkpoint_id, {})[benchmark, metric, filter] = via
    return found


def has_more_scores(session: Session, project_id: int, amount: int) -> bool:
    """Whether the project has more current scores than this: what reads them all would keep a page waiting."""
    query = select(CurrentScore.score_metric_id).where(CurrentScore.project_id == project_id)
    return session.scalars(query.offset(amount).limit(1)).first() is not None
