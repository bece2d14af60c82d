"""The watched score over the steps of a run, as something that can be scanned and ranked: one number a checkpoint.

A benchmark is its own normalised score. A capability is the chance-normalised mean over benchmarks, one a family,
that nearly every evaluated checkpoint has, so that the same questions are asked of each.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.errors import Invalid
from registry.evals.catalogue import catalogue, key_of
from registry.evals.columns import Column, off_scale
from registry.evals.normalise import TOP
from registry.evals.percentiles import Floats, Integers
from registry.evals.score_table import read_columns
from registry.filters.errors import did_you_mean
from registry.models import ScoreSeries
from registry.recovery.figures import orient_all, standard_errors
from registry.recovery.onset import Onset, find_onset
from registry.recovery.run_scores import Scores, scores_of_runs
from registry.recovery.uncounted import read_not_finite, told_uncounted

_Series = tuple[int, int]  # (column, series): results that may be compared with each other

LEAST_ERROR = 1e-9  # a lossless figure is taken as this sure, so that it has a weight
SHARED_BY = 0.8  # a benchmark enters a composite where at least this share of the evaluated checkpoints has it


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


_NOTHING = np.empty(0)


def read_watched(
    session: Session,
    project_id: int,
    run_ids: Sequence[int],
    watch: Watch,
    *,
    or_nothing: bool = False,
    uncounted: bool = True,
) -> Watched:
    """The watched figure of every checkpoint of the runs that has it; `uncounted`: and whose results do not count.

    Raises NothingToWatch where no score of the project is of it, unless `or_nothing` is good as well.
    """
    columns, metric_ids = read_columns(session, [project_id])
    wanted = {place for place, column in enumerate(columns) if _is_wanted(column, watch)}
    if not wanted and or_nothing:
        return Watched(watch, np.empty(0, np.int64), _NOTHING, _NOTHING, (), "", False)
    if not wanted:
        capabilities = {column.benchmark.capability for column in columns if column.benchmark.capability}
        known = [*sorted(capabilities), *sorted({column.name for column in columns} - capabilities)]
        others = did_you_mean(watch.words, known) or f"There are: {', '.join(known[:20]) or 'none'}."
        raise NothingToWatch(f"No score of {watch.words!r} is recorded in this project. {others}")
    metrics = {metric: place for metric, place in metric_ids.items() if place in wanted}
    scores = scores_of_runs(session, project_id, run_ids, metrics)
    every = {(metrics[metric], series): each for (metric, series), each in scores.items()}
    on_scale = {key: _on_scale(columns[key[0]], each) for key, each in every.items()}
    found = {key: each for key, each in on_scale.items() if len(each)}
    members = _choose(columns, found)
    chosen = [key for member in members for key in member]
    sizes = _sample_counts(session, project_id, {series for _, series in chosen})
    ids, values, errors, assumed = _combine(columns, found, members, sizes)
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


def _choose(columns: Sequence[Column], found: Mapping[_Series, Scores]) -> list[list[_Series]]:
    """The members of the composite, one a family, each held by nearly all; of one recorded in parts, all its parts."""
    families: dict[str, list[_Series]] = {}
    for key in found:
        families.setdefault(columns[key[0]].benchmark.family, []).append(key)

    def preference(key: _Series) -> tuple[int, bool, int, int, str, str, str]:
        column = columns[key[0]]
        skill = column.benchmark.capability not in (None, "lm")
        position = catalogue().position(column.benchmark)
        return -len(found[key]), not skill, column.metric_place, position, column.name, column.metric, column.filter

    members = []
    for keys in families.values():
        whole = [key for key in keys if columns[key[0]].benchmark.part_of is None]
        parts: dict[str, list[_Series]] = {}
        for key in keys:
            parts.setdefault(columns[key[0]].benchmark.name, []).append(key)
        members.append(
            [min(whole, key=preference)] if whole else [min(each, key=preference) for each in parts.values()]
        )
    most = max((len(found[key]) for member in members for key in member), default=0)
    common = [[key for key in member if len(found[key]) >= SHARED_BY * most] for member in members]
    return [sorted(member) for member in common if member]


def _sample_counts(session: Session, project_id: int, series: set[int]) -> dict[int, int | None]:
    query = select(ScoreSeries.id, ScoreSeries.n_samples).where(
        ScoreSeries.project_id == project_id, ScoreSeries.id.in_(sorted(series))
    )
    return {row.id: row.n_samples for row in session.execute(query)}


def _combine(
    columns: Sequence[Column],
    found: Mapping[_Series, Scores],
    members: Sequence[Sequence[_Series]],
    sizes: Mapping[int, int | None],
) -> tuple[Integers, Floats, Floats, bool]:
    """(ids, values, errors) of the mean over the members, each the mean over its parts, of who has them all.

    Also whether any standard error in it is assumed.
    """
    chosen = [key for member in members for key in member]
    if not chosen:
        return np.empty(0, np.int64), _NOTHING, _NOTHING, False
    everywhere = reduce(_in_both, [found[key].ids for key in chosen])
    assumed, means = False, []
    for member in members:
        parts = []
        for key in member:
            scores, column = found[key], columns[key[0]]
            if len(scores) > len(everywhere):
                scores = scores.where(np.searchsorted(scores.ids, everywhere))
            value, published = scores.values, scores.errors
            error, is_assumed = standard_errors(value, published, sizes.get(key[1]), column.benchmark, column.metric)
            assumed = assumed or is_assumed
            parts.append(orient_all(value, error, column.benchmark, column.metric))
        means.append(_mean(parts))
    values, errors = _mean(means)
    return everywhere, values, errors, assumed


def _in_both(ids: Integers, others: Integers) -> Integers:
    """Those that are in both, ascending; nearly always they are the same, which needs no sorting."""
    return ids if np.array_equal(ids, others) else np.intersect1d(ids, others, assume_unique=True)


def _mean(figures: Sequence[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Of independent figures; without an error where one of them has none."""
    values = np.sum([value for value, _ in figures], axis=0) / len(figures)
    return values, np.sqrt(np.sum([error**2 for _, error in figures], axis=0)) / len(figures)


def _on_scale(column: Column, scores: Scores) -> Scores:
    """The scores that can be of the benchmark's scale; one that cannot is not rescaled by guess."""
    inside = ~off_scale(scores.values, column.benchmark)
    return scores if inside.all() else scores.where(inside)


def scan(watched: Watched, steps: Integers, ids: Integers) -> tuple[Onset | None, Floats | None, str]:
    """(onset, P(already bad) of each, why there is none) along a path of checkpoints by ascending step.

    A checkpoint between two evaluated ones has the P(bad) of the next; one beyond the last evaluated has NaN, and so
    has one whose score stands alone.
    """
    values, errors = watched.along(ids)
    usable = np.flatnonzero(~np.isnan(values) & ~np.isnan(errors))
    if not len(usable):
        missing = "no comparable finite score" if not len(watched.ids) else "no standard error is known"
        return None, None, f"{watched.watch.words} cannot be scanned for a fall: {missing}"
    _, first = np.unique(steps[usable], return_index=True)
    places = usable[first]
    scanned = steps[places]
    onset = find_onset(scanned, values[places], np.maximum(errors[places], LEAST_ERROR))
    if math.isnan(onset.p_no_change):  # too few to scan
        return onset, None, onset.sentence
    chances = np.asarray(onset.p_bad)
    told = ~np.isnan(chances)
    bad = np.append(chances[told], np.nan)[np.searchsorted(scanned[told], steps, side="left")]
    return onset, np.where(np.isin(steps, onset.alone), np.nan, bad), ""
