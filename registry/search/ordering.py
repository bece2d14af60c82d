"""What comes first among those that meet everything: the best match, newest, oldest, smallest model, lowest loss."""

from collections.abc import Sequence

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointRow
from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Floats, Integers
from registry.evals.population.table import Part
from registry.filters import tables
from registry.search.contrast import Key, best_first
from registry.search.evaluation import Evaluation
from registry.search.reading import LOWEST_LOSS, NEWEST, OLDEST, SMALLEST, Reading
from registry.wording import counted

NO_LOSS = "Nothing that meets the other conditions has a finite loss: what has none is never ranked as low."


def in_order(session: Session, found: Evaluation, rows: Integers, order: str, most: int, *, match: Key) -> Integers:
    """The first `most` of these rows; by loss only those that have a finite one, by size those of unknown size last."""
    if order == LOWEST_LOSS:
        losses = _losses(session, found)
        rows = rows[np.isfinite(losses[rows])]
        return best_first(rows, [lambda some: -losses[some]], found.table.checkpoints, most)
    if order == SMALLEST:
        sizes = _sizes(session, found)
        return best_first(rows, [lambda some: -sizes[some], match], found.table.checkpoints, most)
    saved = found.population.rows.saved_at
    own = saved[found.table.rows] if isinstance(found.table, Part) else saved
    return best_first(rows, [lambda some: own[some] if order == NEWEST else -own[some]], found.table.checkpoints, most)


def _sizes(session: Session, found: Evaluation) -> Floats:
    """(n,) the number of parameters of the model of each row of the table; infinite where nobody said."""
    run = tables.run.c
    projects = sorted(found.population.project_ids)
    query = select(run.id, run.parameter_count).where(run.project_id.in_(projects), run.parameter_count.is_not(None))
    ids, counts = read_arrays(session, [query], (np.int64, np.int64))
    order = np.argsort(ids)
    ids, counts = ids[order], counts[order]
    runs = found.population.rows.run_ids
    own = runs[found.table.rows] if isinstance(found.table, Part) else runs
    at = np.minimum(np.searchsorted(ids, own), max(len(ids) - 1, 0))
    return np.where(ids[at] == own, counts[at], np.inf) if len(ids) else np.full(len(own), np.inf)


def _losses(session: Session, found: Evaluation) -> Floats:
    """(n,) the loss of each row of the table; NaN where there is none, or none that is finite."""
    checkpoint = tables.checkpoint.c
    projects = sorted(found.population.project_ids)
    query = select(checkpoint.id, checkpoint.loss).where(
        checkpoint.project_id.in_(projects), checkpoint.loss.is_not(None)
    )
    ids, values = read_arrays(session, [query], (np.int64, np.float64))
    order = np.argsort(ids)
    losses = np.full(len(found.table.checkpoints), np.nan)
    at = np.searchsorted(ids[order], found.table.checkpoints)
    there = at < len(ids)
    there[there] = ids[order][at[there]] == found.table.checkpoints[there]
    losses[there] = values[order][at[there]]
    return losses


def order_warnings(reading: Reading, shown: Sequence[CheckpointRow], *, met: bool, some_meet: bool) -> tuple[str, ...]:
    """What is to be known of the order: times that nobody said, and losses that are not of one training.

    `met`: what is shown meets everything; `some_meet`: somebody meets the conditions, whatever the loss.
    """
    if reading.order == LOWEST_LOSS:
        runs = {row.checkpoint.run.id for row in shown}
        if not met:
            return (NO_LOSS,) if some_meet else ()
        apart = f"These losses are of {counted(len(runs), 'run')}: over other data or tokenizers they do not compare."
        return (apart,) if len(runs) > 1 else ()
    return _time_warnings(reading, shown)


def _time_warnings(reading: Reading, shown: Sequence[CheckpointRow]) -> tuple[str, ...]:
    of_time = reading.order in (NEWEST, OLDEST) or any(
        getattr(each, "field", "") == "saved_at" for each in reading.conditions
    )
    assumed = sum(row.saved_at_assumed for row in shown)
    if not assumed or not of_time:
        return ()
    whose = "it was" if assumed == 1 else "they were"
    return (
        f"Of {counted(len(shown), 'result')}, {assumed} {'does' if assumed == 1 else 'do'} not say when {whose} saved: "
        "the time when the record arrived stands for it.",
    )
