"""Ranking by several conditions at once: a checkpoint is as good as the condition that it meets least."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from registry.evals.percentiles import Booleans, Floats, Integers


@dataclass(frozen=True, eq=False)
class Order:
    """`places` of the rows to show, best first, and the `score` of every row. `strict`: those shown meet everything."""

    places: Integers
    score: Floats
    strict: bool


def order_by_contrast(scores: Floats, met: Booleans, ids: Integers, margins: Floats | None = None) -> Order:
    """Order rows by how well they meet all conditions: `scores` and `met` are (n, conditions), scores 0 to 1.

    The score is the least over the conditions, for the query is a conjunction: a mean would let an excess in one
    make up for a failure in another. Ties fall to the mean, then to `margins` (n,), then to the smaller id. A row
    with a missing score (NaN) is not ordered. Rows that meet every condition are the answer; where there are none,
    the nearest are, and `strict` is false.
    """
    known = np.isfinite(scores).all(axis=1) if scores.shape[1] else np.ones(len(ids), dtype=bool)
    strict = known & met.all(axis=1)
    shown = strict if strict.any() else known
    score = np.where(known, scores.min(axis=1, initial=1.0), np.nan)
    mean = np.where(known, scores.mean(axis=1) if scores.shape[1] else 1.0, np.nan)
    tie = np.zeros(len(ids)) if margins is None else np.nan_to_num(margins)
    places = np.flatnonzero(shown)
    keys = (ids[places], -tie[places], -np.round(mean[places], 12), -np.round(score[places], 12))
    return Order(places[np.lexsort(keys)], score, bool(strict.any()))


def on_front(scores: Floats, places: Sequence[int] | Integers) -> list[bool]:
    """For each place: whether no row is at least as good in every condition and better in one (Pareto).

    A label only, never an order: a front admits rows that are best in one condition and hopeless in the others.
    """
    known = scores[np.isfinite(scores).all(axis=1)]
    labels = []
    for place in places:
        row = scores[place]
        labels.append(not bool(((known >= row).all(axis=1) & (known > row).any(axis=1)).any()))
    return labels
