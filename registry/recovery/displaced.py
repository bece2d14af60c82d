"""What a score said before one that never ranks took its place: a value off the scale, or one that is not finite.

Such a value is the current score, shown as it came. It is no measurement of the checkpoint, so that it must not settle
what the one before it said.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import to_micros
from registry.evals.columns import Column, off_scale
from registry.models import Checkpoint, CurrentScore, Score, ScoreSeries
from registry.recovery.run_scores import Scores, Series
from registry.upsert import chunks

_Place = tuple[int, int]  # (metric, checkpoint)


def with_displaced(
    session: Session,
    project_id: int,
    run_ids: Collection[int],
    columns: Mapping[int, Column],
    scores: Mapping[Series, Scores],
) -> dict[Series, Scores]:
    """The current scores of the runs by series, with the last that can rank where the current one cannot.

    `columns`: by metric.
    """
    outside = {key: off_scale(each.values, columns[key[0]].benchmark) for key, each in scores.items()}
    places = {(key[0], number) for key, each in scores.items() for number in each.ids[outside[key]].tolist()}
    places |= _not_finite(session, project_id, run_ids, columns)
    found = {key: each.where(~outside[key]) if outside[key].any() else each for key, each in scores.items()}
    for series, number, value, stderr in _last_ranking(session, project_id, columns, places):
        old = found.get(series) or Scores(np.empty(0, np.int64), np.empty(0), np.empty(0))
        at = int(np.searchsorted(old.ids, number))
        found[series] = Scores(
            np.insert(old.ids, at, number),
            np.insert(old.values, at, value),
            np.insert(old.errors, at, np.nan if stderr is None else stderr),
        )
    return found


def _not_finite(session: Session, project_id: int, run_ids: Collection[int], metrics: Collection[int]) -> set[_Place]:
    query = (
        select(CurrentScore.score_metric_id, CurrentScore.checkpoint_id)
        .join(Checkpoint, (Checkpoint.project_id == project_id) & (Checkpoint.id == CurrentScore.checkpoint_id))
        .where(CurrentScore.project_id == project_id, CurrentScore.score_metric_id.in_(sorted(metrics)))
        .where(CurrentScore.value.is_(None), Checkpoint.run_id.in_(sorted(run_ids)))
    )
    return {(metric, number) for metric, number in session.execute(query)}


def _last_ranking(
    session: Session, project_id: int, columns: Mapping[int, Column], places: Collection[_Place]
) -> Sequence[tuple[Series, int, float, float | None]]:
    """(series, checkpoint, value, published error) of the newest result at each place that can rank."""
    newest: dict[_Place, tuple[tuple[int, int], tuple[Series, int, float, float | None]]] = {}
    for chunk in chunks(sorted({number for _, number in places})):
        query = (
            select(Score, ScoreSeries.score_metric_id)
            .join(ScoreSeries, (ScoreSeries.project_id == Score.project_id) & (ScoreSeries.id == Score.series_id))
            .where(Score.project_id == project_id, Score.checkpoint_id.in_(chunk), Score.value.is_not(None))
        )
        for score, metric in session.execute(query):
            place = metric, score.checkpoint_id
            value = score.value
            if place not in places or value is None or off_scale(np.array([value]), columns[metric].benchmark)[0]:
                continue
            at = (0 if score.evaluated_at is None else to_micros(score.evaluated_at), score.arrival)
            if place not in newest or at > newest[place][0]:
                newest[place] = at, ((metric, score.series_id), score.checkpoint_id, value, score.stderr)
    return [found for _, found in newest.values()]
