"""Ranking by several conditions at once: a checkpoint is as good as the condition that it meets least."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from registry.evals.percentiles import Floats, Integers

Key = Callable[[Integers], Any]  # the numbers that some rows are ordered by

_LARGE: Final = 50_000  # values from which a sample says first what cannot be among the greatest


def best_first(rows: Integers, keys: Sequence[Key], ids: Integers, most: int) -> Integers:
    """The best `most` of these rows by the first key, the largest first, ties by the next keys, then by the smaller id.

    A key is asked only for rows that the keys before it leave undecided. `ids` are those of all rows.
    """
    keys = [*keys, lambda some: -ids[some]]
    chosen: list[Integers] = []
    wanted = most
    for key in keys:
        if len(rows) <= wanted:
            break
        values = key(rows)
        bound = greatest(values, wanted)
        above = rows[values > bound]
        chosen.append(above)
        wanted -= len(above)
        rows = rows[values == bound]
    kept = np.concatenate([*chosen, rows])
    return np.asarray(kept[np.lexsort([-key(kept) for key in reversed(keys)])], dtype=np.int64)


def greatest(values: Any, number: int) -> Any:
    """The greatest of at least `number` values for 1, the second greatest for 2, and so on."""
    if len(values) > _LARGE and len(sample := values[:: len(values) // (_LARGE // 4)]) >= number:
        least = np.partition(sample, len(sample) - number)[len(sample) - number]
        if least == values.max():
            return least
        values = values[values >= least]
    return np.partition(values, len(values) - number)[len(values) - number]


def on_front(scores: Floats, places: Sequence[int] | Integers) -> list[bool]:
    """For each place: whether no row is at least as good in every condition and better in one (Pareto).

    A label only, never an order: a front admits rows that are best in one condition and hopeless in the others.
    """
    best = scores.max(axis=0, initial=-np.inf)
    labels = []
    for row in scores[places]:
        beaten = (scores >= row).all(axis=1) & (scores > row).any(axis=1)
        labels.append(bool((row >= best).all()) or not bool(beaten.any()))
    return labels
