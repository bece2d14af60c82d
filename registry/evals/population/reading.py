"""What a population is read from: checkpoints, attempts and scores, a statement each.

Joined in one statement, SQLite without statistics chose a plan that took two minutes for 80,000 scores; apart, each is
a walk along one index. Rows become arrays as they come, so that a million of them never stand as Python objects.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import BigInteger, ColumnElement, Select, cast, extract, select, type_coerce
from sqlalchemy.orm import Session

from registry.db import Int64
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
        read = _arrays(session, [query], (np.int64,) * 5 + (np.bool_,))
        ended = select(_ATTEMPT.c.id, _ATTEMPT.c.live_through_step).where(
            _ATTEMPT.c.project_id.in_(sorted(project_ids)), _ATTEMPT.c.live_through_step.is_not(None)
        )
    else:
        queries = [select(*columns).where(here, _CHECKPOINT.c.id.in_(chunk)) for chunk in chunks(sorted(only))]
        read = _arrays(session, queries, (np.int64,) * 5 + (np.bool_,))
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


def read_scores(
    session: Session, project_ids: Collection[int], metrics: Collection[int], only: Collection[int] | None = None
) -> Scores:
    """The finite current scores of these metrics, of all checkpoints or of `only`.

    Whole columns are read from the index of values alone, which does not say what is lent by a copy; that is few, and
    has an index of its own. (With it in one statement, 4 columns of a million scores took minutes on SQLite.)
    """
    own: list[ColumnElement[bool]] = [_SCORE.c.project_id.in_(sorted(project_ids)), _SCORE.c.value.is_not(None)]
    columns = (_SCORE.c.checkpoint_id, _SCORE.c.score_metric_id, _SCORE.c.value)
    lent = _SCORE.c.via_checkpoint_id.is_not(None)
    if only is not None:
        queries = [
            select(*columns, lent).where(*own, _SCORE.c.checkpoint_id.in_(chunk)) for chunk in chunks(sorted(only))
        ]
        return Scores(*_arrays(session, queries, (np.int64, np.int64, np.float64, np.bool_)))
    parts = list(chunks(metrics))
    of_metrics = [select(*columns).where(*own, _SCORE.c.score_metric_id.in_(part)) for part in parts]
    checkpoints, of_metric, values = _arrays(session, of_metrics, (np.int64, np.int64, np.float64))
    of_copies = [select(*columns[:2]).where(own[0], lent, _SCORE.c.score_metric_id.in_(part)) for part in parts]
    borrowers, their_metrics = _arrays(session, of_copies, (np.int64, np.int64))
    via = _pairs_in(checkpoints, of_metric, borrowers, their_metrics)
    return Scores(checkpoints, of_metric, values, via)


def _pairs_in(checkpoints: Integers, metrics: Integers, others: Integers, their_metrics: Integers) -> Booleans:
    """Which (checkpoint, metric) are among the others."""
    found = np.zeros(len(checkpoints), dtype=bool)
    for metric in np.unique(their_metrics):
        here = metrics == metric
        found[here] = np.isin(checkpoints[here], others[their_metrics == metric])
    return found


def _row_columns(session: Session) -> list[Any]:
    saved: Any = _CHECKPOINT.c.saved_at
    if session.get_bind().dialect.name == "sqlite":
        micros: Any = type_coerce(saved, Int64)
    else:
        micros = cast(extract("epoch", saved) * 1_000_000, BigInteger)
    own = _CHECKPOINT.c
    committed = own.state == CheckpointState.COMMITTED.value
    return [own.id, own.run_id, own.attempt_id, own.step, micros, committed]


def _arrays(session: Session, queries: Iterable[Select[Any]], types: Sequence[Any]) -> list[Any]:
    """The columns of all rows of these statements, an array each.

    Taken from the driver's cursor as they come: every column is a number that needs no conversion, and a million rows
    as objects of SQLAlchemy took three times as long.
    """
    shape = np.dtype([(f"f{place}", each) for place, each in enumerate(types)])
    parts = [np.empty(0, dtype=shape)]
    for query in queries:
        result: Any = session.execute(query)
        parts.append(np.fromiter(result.cursor, shape))
        result.close()
    whole = np.concatenate(parts)
    return [np.ascontiguousarray(whole[name]) for name in shape.names or ()]
