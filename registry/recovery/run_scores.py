"""The current scores of some runs by series, as columns that a process keeps from one question to the next.

A rollback in production mode asks for every score of a run. 200,000 of them take half a second to read; kept, only
what changed since is read again, as for populations (`registry.changes`), and an answer is as new as before.
"""

from collections import OrderedDict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise
from threading import Lock
from typing import Any, Final

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.changes import changes_since, mark_of
from registry.db import Database
from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Floats, Integers
from registry.filters import tables
from registry.upsert import chunks

MAX_KEPT: Final = 64  # sets of runs
MAX_SCORES: Final = 4_000_000  # of all of them: 100 MB
MANY_CHANGES: Final = 5_000  # from which on everything is read anew
_KEEPER: Final = "run scores"
_CHECKPOINT, _SCORE = tables.checkpoint, tables.current_score

Series = tuple[int, int]  # (score metric, series): results that may be compared with each other


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The scores of one series: checkpoint ids, ascending, values, and published errors (NaN: none)."""

    ids: Integers
    values: Floats
    errors: Floats

    def __len__(self) -> int:
        return len(self.ids)

    def where(self, kept: Any) -> "Scores":
        return Scores(self.ids[kept], self.values[kept], self.errors[kept])


def scores_of_runs(
    session: Session, project_id: int, run_ids: Collection[int], metrics: Collection[int]
) -> dict[Series, Scores]:
    """The finite current scores of the runs' checkpoints in these metrics, those that lossless copies lend included."""
    database: Database | None = session.info.get("database")
    if database is None:
        return _read(session, project_id, run_ids, metrics)
    keeper = database.kept.setdefault(_KEEPER, Keeper())
    assert isinstance(keeper, Keeper)
    return keeper.scores(session, project_id, run_ids, metrics)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    """`metrics`: what was read, so that a metric without a score is not asked for again. Never changed in place."""

    mark: int
    metrics: frozenset[int]
    by_series: Mapping[Series, Scores]

    @property
    def size(self) -> int:
        return sum(map(len, self.by_series.values()))


class Keeper:
    """The scores of one database's runs, the latest asked for last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, frozenset[int]], _Kept] = OrderedDict()
        self._lock = Lock()

    def scores(
        self, session: Session, project_id: int, run_ids: Collection[int], metrics: Collection[int]
    ) -> dict[Series, Scores]:
        key, wanted = (project_id, frozenset(run_ids)), frozenset(metrics)
        with self._lock:
            before = self._kept.get(key)
        now = _renewed(session, project_id, run_ids, wanted, before)
        with self._lock:
            self._kept[key] = now
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and (
                len(self._kept) > MAX_KEPT or sum(each.size for each in self._kept.values()) > MAX_SCORES
            ):
                self._kept.popitem(last=False)
        return {series: scores for series, scores in now.by_series.items() if series[0] in wanted}

    def close(self) -> None:
        """Nothing runs by itself here."""


def _renewed(
    session: Session, project_id: int, run_ids: Collection[int], wanted: frozenset[int], before: _Kept | None
) -> _Kept:
    """What is kept, with what changed since read again, and with the metrics that were not asked for before.

    A mark is taken before the reading that it stands for: what changes meanwhile is read again the next time. Where
    this session sees an older state than the one that is kept, so does the mark.
    """
    if before is None:
        return _Kept(mark_of(session), wanted, _read(session, project_id, run_ids, wanted))
    mark = mark_of(session)
    changes = changes_since(session, [project_id], before.mark)
    if len(changes.subjects) > MANY_CHANGES:
        return _Kept(mark, wanted, _read(session, project_id, run_ids, wanted))
    by_series = before.by_series
    if changes.subjects:
        fresh = _read(session, project_id, run_ids, before.metrics, only=changes.subjects)
        by_series = _replaced(by_series, np.fromiter(changes.subjects, np.int64), fresh)
    if missing := wanted - before.metrics:
        by_series = {**by_series, **_read(session, project_id, run_ids, missing)}
    elif not changes.subjects:
        mark = max(mark, before.mark)
    return _Kept(mark, before.metrics | wanted, by_series)


def _replaced(old: Mapping[Series, Scores], subjects: Integers, fresh: Mapping[Series, Scores]) -> dict[Series, Scores]:
    """The scores without those of the subjects, and with the fresh ones in their place."""
    found = {}
    for series in dict.fromkeys((*old, *fresh)):
        kept, new = old.get(series), fresh.get(series)
        if kept is not None and len(here := _places(kept.ids, subjects)):
            kept = Scores(np.delete(kept.ids, here), np.delete(kept.values, here), np.delete(kept.errors, here))
        if kept is not None and new is not None:
            at = np.searchsorted(kept.ids, new.ids)
            kept = Scores(
                np.insert(kept.ids, at, new.ids),
                np.insert(kept.values, at, new.values),
                np.insert(kept.errors, at, new.errors),
            )
        merged = new if kept is None else kept
        if merged is not None and len(merged):
            found[series] = merged
    return found


def _places(ids: Integers, wanted: Integers) -> Integers:
    """Where in these ascending ids the wanted ones are."""
    at = np.searchsorted(ids, wanted)
    inside = at < len(ids)
    return np.asarray(at[inside][ids[at[inside]] == wanted[inside]])


def _read(
    session: Session,
    project_id: int,
    run_ids: Collection[int],
    metrics: Collection[int],
    only: Collection[int] | None = None,
) -> dict[Series, Scores]:
    here = (_CHECKPOINT.c.project_id == _SCORE.c.project_id) & (_CHECKPOINT.c.id == _SCORE.c.checkpoint_id)
    query = (
        select(
            *(_SCORE.c.checkpoint_id, _SCORE.c.score_metric_id, _SCORE.c.series_id),
            *(_SCORE.c.value, func.coalesce(_SCORE.c.stderr, -1.0)),
        )
        .select_from(_CHECKPOINT)
        .join(_SCORE, here)
        .where(
            *(_SCORE.c.project_id == project_id, _SCORE.c.value.is_not(None)),
            *(_CHECKPOINT.c.project_id == project_id, _CHECKPOINT.c.run_id.in_(sorted(run_ids))),
            _SCORE.c.score_metric_id.in_(sorted(metrics)),
        )
    )
    queries = [query]
    if only is not None:
        queries = [query.where(_SCORE.c.checkpoint_id.in_(chunk)) for chunk in chunks(sorted(only))]
    return _by_series(*read_arrays(session, queries, (np.int64,) * 3 + (np.float64,) * 2))


def _by_series(
    ids: Integers, metrics: Integers, series: Integers, values: Floats, errors: Floats
) -> dict[Series, Scores]:
    order = np.lexsort((ids, series))
    every = Scores(ids[order], values[order], np.where(errors < 0, np.nan, errors)[order])
    metrics, series = metrics[order], series[order]
    bounds = np.flatnonzero(np.diff(series, prepend=-1, append=-1)).tolist()  # ids are positive
    return {
        (int(metrics[start]), int(series[start])): every.where(slice(start, end))
        for start, end in pairwise(bounds)  # a series is of one metric
    }
