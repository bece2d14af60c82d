"""Whose results a watched figure does not count: what is not finite, off its scale, or evaluated in another way."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.percentiles import Integers
from registry.models import Checkpoint, CurrentScore
from registry.recovery.run_scores import Scores
from registry.wording import counted, was

_Series = tuple[int, int]  # (column, series)
_WORDS: Final = (
    "{} with a score that is not finite {} left out",
    "{} with a score off the scale {} left out",
    "{} {} evaluated under other conditions only",
)


def read_not_finite(session: Session, project_id: int, run_ids: Sequence[int], metrics: Collection[int]) -> Integers:
    """The checkpoints of the runs that have a NaN or an infinity in one of the metrics."""
    query = (
        select(CurrentScore.checkpoint_id)
        .join(Checkpoint, (Checkpoint.project_id == project_id) & (Checkpoint.id == CurrentScore.checkpoint_id))
        .where(CurrentScore.project_id == project_id, CurrentScore.score_metric_id.in_(sorted(metrics)))
        .where(CurrentScore.value.is_(None), Checkpoint.run_id.in_(sorted(run_ids)))
    )
    return np.array(session.scalars(query).all(), dtype=np.int64)


def told_uncounted(
    counted_in: Integers,
    not_finite: Integers,
    every: Mapping[_Series, Scores],
    on_scale: Mapping[_Series, Scores],
    chosen: Sequence[_Series],
) -> str:
    """In words, how many checkpoints have results and yet no figure; each is counted for one reason.

    `counted_in` have a figure; `every` series with all finite scores, `on_scale` with those that can be, of which the
    figure is made of `chosen`.
    """
    places = {place for place, _ in chosen}
    none = np.empty(0, np.int64)
    off = [np.setdiff1d(each.ids, on_scale[key].ids if key in on_scale else none) for key, each in every.items()]
    others = [each.ids for key, each in on_scale.items() if key not in chosen and key[0] in places]
    said, told = list[str](), counted_in
    for ids, words in zip(([not_finite], off, others), _WORDS, strict=True):
        new = np.setdiff1d(np.concatenate([none, *ids]), told)
        told = np.union1d(told, new)
        if len(new):
            said.append(words.format(counted(len(new), "checkpoint"), was(len(new))))
    return "; ".join(said)
