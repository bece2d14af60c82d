"""The watched score over the steps of a run, as something that can be scanned and ranked: one number a checkpoint.

A benchmark is its own normalised score. A capability is the chance-normalised mean over benchmarks, one a family,
that nearly every evaluated checkpoint has, so that the same questions are asked of each.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from registry.errors import Invalid
from registry.evals.catalogue import catalogue, key_of
from registry.evals.columns import Column
from registry.evals.normalise import TOP
from registry.evals.percentiles import Floats, Integers
from registry.evals.score_table import read_columns
from registry.filters.errors import did_you_mean
from registry.recovery.composite import NOTHING, choose, combine, on_scale, sample_counts
from registry.recovery.displaced import with_displaced
from registry.recovery.onset import Onset, find_onset
from registry.recovery.run_scores import scores_of_runs
from registry.recovery.uncounted import read_not_finite, told_uncounted
from registry.wording import listed

MOST_NAMED = 20  # of what could be watched
LEAST_ERROR = 1e-9  # a lossless figure is taken as this sure, so that it has a weight


class NothingToWatch(Invalid):
    code = "nothing-to-watch"
    title = "The watched benchmark or capability is unknown here"


@dataclass(frozen=True, slots=True)
class Watch:
    """What must not have fallen: a benchmark or a capability; neither: every capability together."""

    benchmark: str | None = None
    capability: str | None = None

    @property
    def words(self) -> str:
        return self.benchmark or self.capability or "all capabilities"


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Figures on the common scale (larger is better) of the checkpoints `ids`, ascending; NaN errors are unknown.

    `made_of`: the benchmarks; `left_out`: in words, whose results do not count, and why.
    """

    watch: Watch
    ids: Integers
    values: Floats
    errors: Floats
    made_of: tuple[str, ...]
    left_out: str
    assumed: bool

    def along(self, ids: Integers) -> tuple[Floats, Floats]:
        """(values, errors) of these checkpoints, NaN where they have none."""
        if not len(self.ids):
            return np.full(len(ids), np.nan), np.full(len(ids), np.nan)
        places = np.minimum(np.searchsorted(self.ids, ids), len(self.ids) - 1)
        has = self.ids[places] == ids
        return np.where(has, self.values[places], np.nan), np.where(has, self.errors[places], np.nan)


def read_watched(
    session: Session,
    project_id: int,
    run_ids: Sequence[int],
    watch: Watch,
    *,
    or_nothing: bool = False,
    uncounted: bool = True,
    displaced: bool = False,
) -> Watched:
    """The watched figure of every checkpoint of the runs that has it; `uncounted`: and whose results do not count.

    `displaced`: where the current score cannot rank, what the one before it said.

    Raises NothingToWatch where no score of the project is of it, unless `or_nothing` is good as well.
    """
    columns, metric_ids = read_columns(session, [project_id])
    wanted = {place for place, column in enumerate(columns) if _is_wanted(column, watch)}
    if not wanted and or_nothing:
        return Watched(watch, np.empty(0, np.int64), NOTHING, NOTHING, (), "", False)
    if not wanted:
        capabilities = {column.benchmark.capability for column in columns if column.benchmark.capability}
        known = [*sorted(capabilities), *sorted({column.name for column in columns} - capabilities)]
        if not known:
            raise NothingToWatch("No score is recorded in this project yet: import evaluations, or watch nothing.")
        others = did_you_mean(watch.words, known) or f"There are: {listed(known, MOST_NAMED)}."
        raise NothingToWatch(f"No score of {watch.words!r} is recorded in this project. {others}")
    metrics = {metric: place for metric, place in metric_ids.items() if place in wanted}
    scores = scores_of_runs(session, project_id, run_ids, metrics)
    if displaced:
        of_metric = {metric: columns[place] for metric, place in metrics.items()}
        scores = with_displaced(session, project_id, run_ids, of_metric, scores)
    every = {(metrics[metric], series): each for (metric, series), each in scores.items()}
    scaled = {key: on_scale(columns[key[0]], each) for key, each in every.items()}
    found = {key: each for key, each in scaled.items() if len(each)}
    members = choose(columns, found)
    chosen = [key for member in members for key in member]
    sizes = sample_counts(session, project_id, {series for _, series in chosen})
    ids, values, errors, assumed = combine(columns, found, members, sizes)
    names = tuple(sorted({columns[place].name for place, _ in chosen}))
    left_out = ""
    if uncounted:
        not_finite = read_not_finite(session, project_id, run_ids, metrics)
        left_out = told_uncounted(ids, not_finite, every, found, chosen)
    return Watched(watch, ids, values, errors, names, left_out, assumed)


def _is_wanted(column: Column, watch: Watch) -> bool:
    if watch.benchmark is not None:
        entry = catalogue().get(watch.benchmark)
        named = {key_of(watch.benchmark)} | ({key_of(entry.name)} if entry is not None else set())
        return key_of(column.name) in named
    capability = column.benchmark.capability
    if watch.capability is not None:
        wanted = catalogue().capability(watch.capability)
        return capability == (wanted.name if wanted is not None else watch.capability)
    return capability not in (None, "lm") and column.benchmark.scale in TOP


def scan(watched: Watched, steps: Integers, ids: Integers) -> tuple[Onset | None, Floats | None, str]:
    """(onset, P(already bad) of each, why there is none) along a path of checkpoints by ascending step.

    A checkpoint between two evaluated ones has the P(bad) of the next; one beyond the last evaluated has NaN, and so
    has one whose score stands alone.
    """
    scanned, values, errors = scanned_points(watched, steps, ids)
    if not len(scanned):
        missing = "no comparable finite score" if not len(watched.ids) else "no standard error is known"
        return None, None, f"{watched.watch.words} cannot be scanned for a fall: {missing}"
    onset = find_onset(scanned, values, errors)
    if math.isnan(onset.p_no_change):  # too few to scan
        return onset, None, onset.sentence
    chances = np.asarray(onset.p_bad)
    told = ~np.isnan(chances)
    bad = spread_over(steps, scanned[told], chances[told])
    return onset, np.where(np.isin(steps, onset.alone), np.nan, bad), ""


def scanned_points(watched: Watched, steps: Integers, ids: Integers) -> tuple[Integers, Floats, Floats]:
    """(steps, values, errors) of the path's checkpoints with a figure and a known error, one for each step."""
    values, errors = watched.along(ids)
    usable = np.flatnonzero(~np.isnan(values) & ~np.isnan(errors))
    _, first = np.unique(steps[usable], return_index=True)
    places = usable[first]
    return steps[places], values[places], np.maximum(errors[places], LEAST_ERROR)


def spread_over(steps: Integers, points: Integers, chances: Floats) -> Floats:
    """P(bad) of each step from that of some: between two of them that of the next, beyond the last of them NaN."""
    return np.asarray(np.append(chances, np.nan)[np.searchsorted(points, steps, side="left")])
