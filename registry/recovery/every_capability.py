"""What of a run has fallen, where nobody said what to look at: every capability that it was evaluated on.

The columns of scores are read once for all of them. Of a long run some hundred checkpoints are scanned, spread over
all: an unasked look must not cost more than what was asked. The chance of no change has to be as small as if all
capabilities together were asked about, so that a look at twelve gives no more false alarms than a look at one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy.orm import Session

from registry.evals.columns import Column
from registry.evals.normalise import TOP
from registry.evals.score_table import read_columns
from registry.recovery.bisected import bisects_on, from_bisects
from registry.recovery.composite import Series, choose, combine, on_scale, sample_counts
from registry.recovery.falls import Path
from registry.recovery.onset import ESTABLISHED, LEAST_POINTS, Onset
from registry.recovery.proven import find_proven
from registry.recovery.run_scores import Scores, scores_of_runs
from registry.recovery.watched import Watch, Watched, scan, scanned_points

MOST_SCORES: Final = 1_000_000  # of all checkpoints in all metrics, read unasked: two seconds, once
MOST_POINTS: Final = 400  # of one capability that are scanned
MOST_COMPARED: Final = 4  # capabilities of which two checkpoints are compared, since too few were evaluated


@dataclass(frozen=True, slots=True)
class Fallen:
    """A capability that fell, and what was found."""

    watch: Watch
    onset: Onset


@dataclass(frozen=True, slots=True)
class Overlook:
    """`looked_at`: the capabilities that were looked at; `fallen`: those of them that fell, the surest first.

    `too_many`: there may be more scores than are read unasked, so nothing was looked at.
    """

    looked_at: tuple[str, ...] = ()
    fallen: tuple[Fallen, ...] = ()
    too_many: bool = False


def look_over(session: Session, path: Path, run_ids: Sequence[int]) -> Overlook:
    """The capabilities of the runs that fell along the path."""
    columns, metric_ids = read_columns(session, [path.project_id])
    metrics = {metric: place for metric, place in metric_ids.items() if _is_skill(columns[place])}
    if len(metrics) * len(path.ids) > MOST_SCORES:
        return Overlook(too_many=True)
    looked = _read(session, path, run_ids, columns, metrics) if metrics else []
    if not looked:
        return Overlook()
    searches = bisects_on(session, path)
    fallen, compared = list[Fallen](), 0
    for watched in looked:
        few = len(scanned_points(watched, path.steps, path.ids)[0]) < LEAST_POINTS
        compared += few
        onset = _fall(session, path, watched, searches, len(looked), compare=few and compared <= MOST_COMPARED)
        if onset is not None:
            fallen.append(Fallen(watched.watch, onset))
    fallen.sort(key=lambda each: -(each.onset.drop or 0.0) / (each.onset.drop_stderr or 1.0))
    return Overlook(tuple(each.watch.words for each in looked), tuple(fallen))


def _fall(
    session: Session, path: Path, watched: Watched, searches: Sequence[Any], looked_at: int, *, compare: bool
) -> Onset | None:
    onset, _, _ = scan(watched, path.steps, path.ids)
    if onset is not None and onset.is_established and onset.p_no_change <= ESTABLISHED / looked_at:
        return onset
    found = find_proven(session, path, watched, onset) if compare else from_bisects(session, path, watched, searches)
    return found[0] if found is not None and found[0].is_established else None


# ---- the figures of all capabilities


def _read(
    session: Session, path: Path, run_ids: Sequence[int], columns: Sequence[Column], metrics: Mapping[int, int]
) -> list[Watched]:
    """One for each capability of which a checkpoint of the path has a figure with an error, by name."""
    by_capability: dict[str, dict[Series, Scores]] = {}
    for (metric, series), scores in scores_of_runs(session, path.project_id, run_ids, metrics).items():
        column = columns[metrics[metric]]
        if len(inside := on_scale(column, scores)):
            by_capability.setdefault(str(column.benchmark.capability), {})[metrics[metric], series] = inside
    members = {name: choose(columns, found) for name, found in by_capability.items()}
    chosen = {series for each in members.values() for member in each for _, series in member}
    sizes = sample_counts(session, path.project_id, chosen)
    looked = []
    for name in sorted(by_capability):
        found = _thinned(path, by_capability[name], members[name])
        figures = combine(columns, found, members[name], sizes)
        names = tuple(sorted({columns[place].name for member in members[name] for place, _ in member}))
        watched = Watched(Watch(capability=name), *figures[:3], names, "", figures[3])
        if len(scanned_points(watched, path.steps, path.ids)[0]):
            looked.append(watched)
    return looked


def _is_skill(column: Column) -> bool:
    return column.benchmark.capability not in (None, "lm") and column.benchmark.scale in TOP


def _thinned(path: Path, found: Mapping[Series, Scores], members: Sequence[Sequence[Series]]) -> dict[Series, Scores]:
    """The scores of the members; where they are many, of some of the path's checkpoints, the newest among them."""
    chosen = {key: found[key] for member in members for key in member}
    most = max(chosen.values(), key=len)
    if len(most) <= MOST_POINTS:
        return chosen
    on_path = np.flatnonzero(np.isin(path.ids, most.ids, assume_unique=True))
    some = np.unique(np.linspace(0, len(on_path) - 1, MOST_POINTS).astype(np.int64))
    kept = np.sort(path.ids[on_path[some]])
    return {key: each.where(np.isin(each.ids, kept, assume_unique=True)) for key, each in chosen.items()}
