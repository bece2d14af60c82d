"""Read single results back, and bring those of two checkpoints together item by item."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import join_number
from registry.evals.results import EvalResult, ScoreKey, lossless_copies
from registry.evals.samples.packing import Values, unpack_keys, unpack_values
from registry.models import Benchmark, ItemSet, SampleResult, Score, ScoreMetric, ScoreSeries


@dataclass(frozen=True, slots=True)
class SampleSet:
    """The single results behind one score of a checkpoint, still packed; `result` says how it was evaluated."""

    result: EvalResult
    project_id: int
    item_set_id: int
    count: int
    encoding: str
    body: bytes

    def values(self) -> Values:
        return unpack_values(self.encoding, self.body, self.count)


@dataclass(frozen=True, slots=True)
class Shared:
    """The values of two checkpoints on the items that both answered; `counts`: how many each answered in all."""

    old: Values
    new: Values
    counts: tuple[int, int]

    @property
    def n(self) -> int:
        return len(self.old)

    @property
    def is_partial(self) -> bool:
        return self.n < max(self.counts)


def sample_sets(
    session: Session, project_id: int, checkpoint_ids: Sequence[int]
) -> dict[int, dict[ScoreKey, list[SampleSet]]]:
    """For each checkpoint and metric, the kept single results, the checkpoint's own and then the newest first.

    Those of lossless copies count for it too, as their scores do.
    """
    found: dict[int, dict[ScoreKey, list[SampleSet]]] = {each: {} for each in checkpoint_ids}
    if session.scalar(select(SampleResult.item_set_id).where(SampleResult.project_id == project_id).limit(1)) is None:
        return found
    stands_for = lossless_copies(session, project_id, checkpoint_ids)
    own = SampleResult.project_id
    query = (
        select(SampleResult, Score, ScoreSeries, ScoreMetric, Benchmark.name, ItemSet.count)
        .join(
            Score,
            (Score.project_id == own)
            & (Score.checkpoint_id == SampleResult.checkpoint_id)
            & (Score.series_id == SampleResult.series_id)
            & (Score.digest == SampleResult.digest),
        )
        .join(ScoreSeries, (ScoreSeries.project_id == own) & (ScoreSeries.id == SampleResult.series_id))
        .join(ScoreMetric, (ScoreMetric.project_id == own) & (ScoreMetric.id == ScoreSeries.score_metric_id))
        .join(Benchmark, (Benchmark.project_id == own) & (Benchmark.id == ScoreMetric.benchmark_id))
        .join(ItemSet, (ItemSet.project_id == own) & (ItemSet.id == SampleResult.item_set_id))
        .where(own == project_id, SampleResult.checkpoint_id.in_(sorted(stands_for)))
        .order_by(SampleResult.arrival.desc())
    )
    for row, score, series, metric, benchmark, count in session.execute(query):
        for checkpoint_id in stands_for[row.checkpoint_id]:
            via = None if checkpoint_id == row.checkpoint_id else row.checkpoint_id
            result = _result(score, series, metric, benchmark, via)
            made = SampleSet(result, project_id, row.item_set_id, count, row.encoding, row.body)
            found[checkpoint_id].setdefault(result.key, []).append(made)
    for by_key in found.values():
        for sets in by_key.values():
            sets.sort(key=lambda each: each.result.via is not None)
    return found


def _result(score: Score, series: ScoreSeries, metric: ScoreMetric, benchmark: str, via: int | None) -> EvalResult:
    value = join_number(score.value, score.special)
    assert value is not None  # a score always has one
    return EvalResult(
        benchmark,
        metric.metric,
        metric.filter,
        value,
        score.stderr,
        n_samples=series.n_samples,
        n_shot=series.n_shot,
        version=series.version,
        harness=series.harness,
        harness_version=series.harness_version,
        comparability=strict_json.loads(series.comparability.encode()),
        via=via,
    )


def shared_items(session: Session, pairs: Sequence[tuple[SampleSet, SampleSet]]) -> list[Shared]:
    """For each pair the values on the items that both have; one statement, none where all pairs have equal sets."""
    wanted = {
        (side.project_id, side.item_set_id)
        for old, new in pairs
        if (old.project_id, old.item_set_id) != (new.project_id, new.item_set_id)
        for side in (old, new)
    }
    bodies = _key_bodies(session, wanted)
    return [_shared(old, new, bodies) for old, new in pairs]


def _key_bodies(session: Session, wanted: set[tuple[int, int]]) -> Mapping[int, bytes]:
    if not wanted:
        return {}
    query = select(ItemSet.id, ItemSet.body).where(
        ItemSet.project_id.in_({project for project, _ in wanted}), ItemSet.id.in_({each for _, each in wanted})
    )
    return dict(session.execute(query).all())


def _shared(old: SampleSet, new: SampleSet, bodies: Mapping[int, bytes]) -> Shared:
    left, right = old.values(), new.values()
    counts = (old.count, new.count)
    if old.item_set_id == new.item_set_id:
        return Shared(left, right, counts)
    keys = [unpack_keys(bodies[side.item_set_id]) for side in (old, new)]
    _, at_left, at_right = np.intersect1d(keys[0], keys[1], assume_unique=True, return_indices=True)
    return Shared(left[at_left], right[at_right], counts)
