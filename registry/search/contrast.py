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


def order_by_contrast(
    scores: Floats, met: Booleans, ids: Integers, margins: Floats | None = None, most: int | None = None
) -> Order:
    """Order rows by how well they meet all conditions: `scores` and `met` are (n, conditions), scores 0 to 1.

    The score is the least over the conditions, for the query is a conjunction: a mean would let an excess in one
    make up for a failure in another. Ties fall to the mean, then to `margins` (n,), then to the smaller id. A row
    with a missing score (NaN) is not ordered. Rows that meet every condition are the answer; where there are none,
    the nearest are, and `strict` is false. `most`: no more places are wanted, which spares sorting all of them.
    """
    known = np.isfinite(scores).all(axis=1) if scores.shape[1] else np.ones(len(ids), dtype=bool)
    strict = known & met.all(axis=1)
    shown = strict if strict.any() else known
    score = np.where(known, scores.min(axis=1, initial=1.0), np.nan)
    mean = np.where(known, scores.mean(axis=1) if scores.shape[1] else 1.0, np.nan)
    tie = np.zeros(len(ids)) if margins is None else np.nan_to_num(margins)
    places = np.flatnonzero(shown)
    keys = [np.asarray(np.round(key[places], 12), dtype=np.float64) for key in (score, mean, tie)]
    return Order(places[best_first(keys, ids[places], most)], score, bool(strict.any()))


def best_first(keys: Sequence[Floats], ids: Integers, most: int | None = None) -> Integers:
    """The places of rows by the first key, the largest first, ties by the next keys, then by the smaller id."""
    wanted = np.arange(len(ids))
    if most is not None and most < len(ids):
        wanted = _leading(keys, wanted, most)
    order = np.lexsort((ids[wanted], *(-key[wanted] for key in reversed(keys))))
    return np.asarray(wanted[order][:most])


def _leading(keys: Sequence[Floats], places: Integers, most: int) -> Integers:
    """Places that hold the best `most`; of what is equal in every key all are kept, for the id to decide."""
    chosen: list[Integers] = []
    for key in keys:
        if len(places) <= most:
            break
        values = key[places]
        bound = np.partition(values, len(values) - most)[len(values) - most]
        above = places[values > bound]
        chosen.append(above)
        most -= len(above)
        places = places[values == bound]
    return np.concatenate([*chosen, places])


def on_front(scores: Floats, places: Sequence[int] | Integers) -> list[bool]:
    """For each place: whether no row is at least as good in every condition and better in one (Pareto).

    A label only, never an order: a front admits rows that are best in one condition and hopeless in the others.
    """
    if not len(places):
        return []
    columns = [np.ascontiguousarray(column) for column in scores.T]
    best = [column.max(initial=-np.inf, where=np.isfinite(column)) for column in columns]
    shown = [[float(column[place]) for column in columns] for place in places]
    least = [min(row[at] for row in shown) for at in range(len(columns))]
    # Who is better than one of these is at least as good as the least of them in everything.
    rivals = np.ones(len(scores), dtype=bool)
    for column, bound in zip(columns, least, strict=True):
        rivals &= column >= bound
    known = scores[rivals & np.isfinite(scores).all(axis=1)] if shown and not _all_best(shown, best) else scores[:0]
    labels = []
    for row in shown:
        label = _all_best([row], best)
        labels.append(label or not bool(((known >= row).all(axis=1) & (known > row).any(axis=1)).any()))
    return labels


def _all_best(rows: Sequence[Sequence[float]], best: Sequence[float]) -> bool:
    """Whether nobody can be better than any of these in anything, so that no rival need be looked at."""
    return all(value >= most for row in rows for value, most in zip(row, best, strict=True))
