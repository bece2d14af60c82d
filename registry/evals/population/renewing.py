"""The next population from the one before: only what changed is read, only columns that changed are ranked again."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
from sqlalchemy.orm import Session

from registry.evals.percentiles import Booleans, Floats, Integers
from registry.evals.population.reading import Rows, Scores, read_attempts, read_rows, read_scores
from registry.evals.population.table import Head, Loaded, Population

# From so many changes on, or this share of all rows, everything is read anew instead.
MANY_CHANGES: Final = 5_000
MANY_SHARE: Final = 0.2


def renewed(session: Session, before: Population, subjects: Collection[int]) -> Population:
    """The population with these checkpoints, attempts and benchmarks read again, and the same columns loaded."""
    if len(subjects) > max(MANY_CHANGES, int(MANY_SHARE * len(before.rows))):
        return _read_anew(session, before)
    head = Head.read(session, before.project_ids)
    fresh = read_rows(session, before.project_ids, only=subjects)
    rows, new = with_rows(before.rows, fresh)
    rows, flipped = with_live_steps(rows, read_attempts(session, subjects))
    flipped |= _flipped(before.rows, rows, new)
    after = Population(before.project_ids, head, rows)
    _carry(session, before, after, new, fresh.checkpoints, np.flatnonzero(flipped))
    return after


def _read_anew(session: Session, before: Population) -> Population:
    after = Population.read(session, before.project_ids)
    names = {_key(before, place) for place in before.loaded}
    after.load(session, [place for place in range(len(after.columns)) if _key(after, place) in names])
    return after


def _key(population: Population, place: int) -> tuple[str, str, str, bool]:
    column = population.columns[place]
    return column.name, column.metric, column.filter, bool(column.parts)


def with_rows(before: Rows, fresh: Rows) -> tuple[Rows, Integers]:
    """(the rows with the fresh ones among them or in their place, where among those of before the new ones come in)."""
    _, known = before.places_of(fresh.checkpoints)
    added = np.flatnonzero(~known)
    new = np.searchsorted(before.checkpoints, fresh.checkpoints[added])
    runs = before.runs if not len(added) else np.insert(before.runs, new, _numbers(before, fresh.run_ids[added]))
    plain = {
        name: _with(getattr(before, name), new, getattr(fresh, name)[added])
        for name in ("checkpoints", "run_ids", "attempts", "steps", "saved_at", "committed", "reference")
    }
    rows = Rows(runs=runs, **plain)
    at, _ = rows.places_of(fresh.checkpoints)
    committed, reference = rows.committed.copy(), rows.reference.copy()
    committed[at], reference[at] = fresh.committed, fresh.reference
    return replace(rows, committed=committed, reference=reference), new


def with_live_steps(rows: Rows, through: Mapping[int, int]) -> tuple[Rows, Booleans]:
    """(the rows with the reference as these attempts say it is, which rows that moved in or out)."""
    if not through:
        return rows, np.zeros(len(rows), dtype=bool)
    known = np.array(sorted(through), dtype=np.int64)
    limits = np.array([through[number] for number in known.tolist()], dtype=np.int64)
    at = np.minimum(np.searchsorted(known, rows.attempts), len(known) - 1)
    told = known[at] == rows.attempts
    reference = rows.reference.copy()
    reference[told] = rows.committed[told] & (rows.steps[told] <= limits[at[told]])
    return replace(rows, reference=reference), reference != rows.reference


def _flipped(before: Rows, rows: Rows, new: Integers) -> Booleans:
    """Which rows entered or left the reference; a new one entered it."""
    return np.asarray(_with(before.reference, new, np.zeros(len(new), dtype=bool)) != rows.reference)


def _with(old: Any, new: Integers, values: Any) -> Any:
    return np.insert(old, new, values) if len(new) else old


def _numbers(before: Rows, run_ids: Integers) -> list[int]:
    """The numbers of the runs of new rows: those of before stay, so that only new rows need any work."""
    known: dict[int, int] = {}
    following = int(before.runs.max(initial=-1)) + 1
    for run_id in np.unique(run_ids).tolist():
        there = np.flatnonzero(before.run_ids == run_id)
        known[run_id] = int(before.runs[there[0]]) if len(there) else following
        following = max(following, known[run_id] + 1)
    return [known[run_id] for run_id in run_ids.tolist()]


def _carry(
    session: Session, before: Population, after: Population, new: Integers, again: Integers, flipped: Integers
) -> None:
    """The loaded columns with the scores of the rows that were read `again`; percentiles where nothing moved."""
    places = {_key(after, place): place for place in range(len(after.columns))}
    pairs = {place: places[key] for place in before.loaded if (key := _key(before, place)) in places}
    at, _ = after.rows.places_of(again)
    fresh = _Fresh(read_scores(session, after.project_ids, again.tolist()), again, after)
    moved: set[int] = set()
    for old, place in pairs.items():
        if place not in after.head.wholes:
            after.loaded[place], changed = _column(before.loaded[old], new, at, fresh.of(place))
            if changed or np.isfinite(after.values(place)[flipped]).any():
                moved.add(place)
    for old, place in pairs.items():
        whole = after.head.wholes.get(place)
        if whole is not None:
            after.load(session, whole.places)
            after.loaded[place] = after.whole_of(place)
            moved |= {place} if moved & set(whole.places) or whole != before.head.wholes.get(old) else set()
        if place not in moved and before.columns[old] == after.columns[place] and old in before.known_ranks:
            after.known_ranks[place] = _with(before.known_ranks[old], new, np.nan)
    if not len(new):
        _carry_rankings(before, after, pairs)


class _Fresh:
    """The scores of the rows that were read again, as small columns over those rows."""

    def __init__(self, scores: Scores, again: Integers, after: Population) -> None:
        self._again = again
        self._by_place: dict[int, tuple[Floats, Booleans]] = {}
        for number, metric, value, via in zip(
            scores.checkpoints, scores.metrics.tolist(), scores.values, scores.via, strict=True
        ):
            place = after.head.metric_ids.get(metric)
            if place is not None:
                values, lent = self._by_place.setdefault(place, self._blank())
                row = int(np.searchsorted(again, number))
                values[row], lent[row] = value, via

    def _blank(self) -> tuple[Floats, Booleans]:
        return np.full(len(self._again), np.nan), np.zeros(len(self._again), dtype=bool)

    def of(self, place: int) -> tuple[Floats, Booleans]:
        return self._by_place.get(place) or self._blank()


def _column(old: Loaded, new: Integers, at: Integers, fresh: tuple[Floats, Booleans]) -> tuple[Loaded, bool]:
    """(the column with the fresh values, whether any of them is another). What did not change is not copied."""
    values, via = _with(old.values, new, np.nan), None if old.via is None else _with(old.via, new, False)
    was, lent = values[at], np.zeros(len(at), dtype=bool) if via is None else via[at]
    same = (was == fresh[0]) | (np.isnan(was) & np.isnan(fresh[0]))
    if same.all() and (lent == fresh[1]).all():
        return Loaded(values, via), False
    values = values.copy()
    values[at] = fresh[0]
    if via is not None or fresh[1].any():
        via = np.zeros(len(values), dtype=bool) if via is None else via.copy()
        via[at] = fresh[1]
    return Loaded(values, via), True


def _carry_rankings(before: Population, after: Population, pairs: Mapping[int, int]) -> None:
    """A ranking is the same where all columns of its capability are, with their percentiles."""
    for name, ranking in before.known_rankings.items():
        mine = set(after.places_of([name]))
        same = {new for old, new in pairs.items() if old == new and new in after.known_ranks} >= set(ranking.places)
        if same and mine == set(before.places_of([name])) and mine <= after.loaded.keys():
            after.known_rankings[name] = ranking
