"""What a population is read from: checkpoints, attempts and scores, a statement each.

Joined in one statement, SQLite without statistics chose a plan that took two minutes for 80,000 scores; apart, each is
a walk along one index. Rows become arrays as they come, so that a million of them never stand as Python objects, and
whole columns are read one after the other.
"""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.identities import saved_micros
from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Booleans, Floats, Integers, dense
from registry.filters import tables
from registry.types import CheckpointState
from registry.upsert import chunks

_ATTEMPT, _CHECKPOINT, _SCORE = tables.attempt, tables.checkpoint, tables.current_score
_EVERY_STEP: Final = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False)
class Rows:
    """Checkpoints in the order of their ids; arrays are (n,). `runs` numbers `run_ids` from 0.

    `saved_at` is in microseconds since 1970. `reference`: committed, and on the path that the newest attempt of its
    run stands on.
    """

    checkpoints: Integers
    run_ids: Integers
    runs: Integers
    attempts: Integers
    steps: Integers
    saved_at: Integers
    committed: Booleans
    reference: Booleans

    def __len__(self) -> int:
        return len(self.checkpoints)

    def of_runs(self, run_ids: Integers) -> Booleans:
        """(n,) which checkpoints are of these runs."""
        return np.isin(self._run_of_number, run_ids)[self.runs]

    @cached_property
    def _run_of_number(self) -> Integers:
        """The id of the run of each number: to look for a run among a million checkpoints is to look among those."""
        found = np.zeros(int(self.runs.max(initial=-1)) + 1, dtype=np.int64)
        found[self.runs] = self.run_ids
        return found

    def places_of(self, checkpoints: Integers) -> tuple[Integers, Booleans]:
        """(row of each, whether it is there)."""
        order = np.argsort(checkpoints)  # looked up in their order, a million ids take a tenth of the time
        at = np.empty(len(checkpoints), dtype=np.int64)
        at[order] = np.searchsorted(self.checkpoints, checkpoints[order])
        known = at < len(self.checkpoints)
        known[known] = self.checkpoints[at[known]] == checkpoints[known]
        return at, known


@dataclass(frozen=True, eq=False)
class Scores:
    """(checkpoint, metric, value, whether it is a lossless copy's) of finite current scores, in no order."""

    checkpoints: Integers
    metrics: Integers
    values: Floats
    via: Booleans


def read_rows(session: Session, project_ids: Collection[int], only: Collection[int] | None = None) -> Rows:
    """Every checkpoint of the projects, or those of `only`. One whose files are deleted was evaluated all the same."""
    columns = _row_columns(session)
    here = _CHECKPOINT.c.project_id.in_(sorted(project_ids))
    if only is None:
        query = select(*columns).where(here)
        read = read_arrays(session, [query], (np.int64,) * 5 + (np.bool_,))
        ended = select(_ATTEMPT.c.id, _ATTEMPT.c.live_through_step).where(
            _ATTEMPT.c.project_id.in_(sorted(project_ids)), _ATTEMPT.c.live_through_step.is_not(None)
        )
    else:
        queries = [select(*columns).where(here, _CHECKPOINT.c.id.in_(chunk)) for chunk in chunks(sorted(only))]
        read = read_arrays(session, queries, (np.int64,) * 5 + (np.bool_,))
        ended = select(_ATTEMPT.c.id, _ATTEMPT.c.live_through_step).where(
            _ATTEMPT.c.id.in_(np.unique(read[2]).tolist()), _ATTEMPT.c.live_through_step.is_not(None)
        )
    order = np.argsort(read[0])
    checkpoints, run_ids, attempts, steps, saved_at, committed = (array[order] for array in read)
    last = last_live_steps({row.id: row.live_through_step for row in session.execute(ended)}, attempts)
    reference = committed & (steps <= last)
    return Rows(checkpoints, run_ids, dense(run_ids), attempts, steps, saved_at, committed, reference)


def last_live_steps(through: dict[int, int], attempts: Integers) -> Integers:
    """For each of `attempts` the last step that is live; without a limit the largest number there is."""
    if not through:
        return np.full(attempts.shape, _EVERY_STEP)
    ended = np.array(sorted(through), dtype=np.int64)
    limits = np.array([through[number] for number in sorted(through)], dtype=np.int64)
    at = np.minimum(np.searchsorted(ended, attempts), len(ended) - 1)
    return np.where(ended[at] == attempts, limits[at], _EVERY_STEP)


def read_attempts(session: Session, attempt_ids: Collection[int]) -> dict[int, int]:
    """Through which step each of these attempts is live; those without a limit get the largest number."""
    found: dict[int, int] = {}
    for chunk in chunks(sorted(attempt_ids)):
        query = select(_ATTEMPT.c.id, _ATTEMPT.c.live_through_step).where(_ATTEMPT.c.id.in_(chunk))
        for number, through in session.execute(query):
            found[number] = int(_EVERY_STEP) if through is None else through
    return found


def read_scores(session: Session, project_ids: Collection[int], only: Collection[int]) -> Scores:
    """The finite current scores of these checkpoints."""
    columns = (
        _SCORE.c.checkpoint_id,
        _SCORE.c.score_metric_id,
        _SCORE.c.value,
        _SCORE.c.via_checkpoint_id.is_not(None),
    )
    finite = (_SCORE.c.project_id.in_(sorted(project_ids)), _SCORE.c.value.is_not(None))
    queries = [select(*columns).where(*finite, _SCORE.c.checkpoint_id.in_(chunk)) for chunk in chunks(sorted(only))]
    return Scores(*read_arrays(session, queries, (np.int64, np.int64, np.float64, np.bool_)))


def read_column(session: Session, project_ids: Collection[int], metric: int, rows: Rows) -> tuple[Floats, Booleans]:
    """(the finite current scores of a metric, NaN where there is none, which of them a lossless copy lends).

    A column is read from the index of values alone, which does not say what is lent by a copy; that is few, and has
    an index of its own. (With it in one statement, 4 columns of a million scores took minutes on SQLite.)
    """
    here = (_SCORE.c.project_id.in_(sorted(project_ids)), _SCORE.c.score_metric_id == metric)
    query = select(_SCORE.c.checkpoint_id, _SCORE.c.value).where(*here, _SCORE.c.value.is_not(None))
    checkpoints, found = read_arrays(session, [query], (np.int64, np.float64))
    values, via = np.full(len(rows), np.nan), np.zeros(len(rows), dtype=bool)
    at, known = rows.places_of(checkpoints)
    values[at[known]] = found[known]
    lent = select(_SCORE.c.checkpoint_id).where(*here, _SCORE.c.via_checkpoint_id.is_not(None))
    (borrowers,) = read_arrays(session, [lent], (np.int64,))
    at, known = rows.places_of(borrowers)
    via[at[known]] = True
    return values, via & np.isfinite(values)


def _row_columns(session: Session) -> list[Any]:
    own = _CHECKPOINT.c
    committed = own.state == CheckpointState.COMMITTED.value
    return [own.id, own.run_id, own.attempt_id, own.step, saved_micros(session), committed]
