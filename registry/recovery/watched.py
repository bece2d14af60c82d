"""The watched score over the steps of a run, as something that can be scanned and ranked: one number a checkpoint.

A benchmark is its own normalised score. A capability is the chance-normalised mean over benchmarks, one a family,
that nearly every evaluated checkpoint has, so that the same questions are asked of each.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from registry.errors import Invalid
from registry.evals.catalogue import catalogue, key_of
from registry.evals.columns import Column, off_scale
from registry.evals.normalise import TOP, orient
from registry.evals.score_table import read_columns
from registry.evals.standard_error import choose_standard_error
from registry.models import Checkpoint, CurrentScore, LineageEdge, ScoreSeries
from registry.recovery.onset import Onset, find_onset
from registry.types import LOSSLESS
from registry.upsert import chunks

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


@dataclass(frozen=True, slots=True)
class Point:
    """A checkpoint's figure on the common scale (larger is better), with its standard error where one is known."""

    value: float
    stderr: float | None


@dataclass(frozen=True, slots=True)
class Watched:
    """Figures by checkpoint id. `made_of`: the benchmarks; `left_out`: results under other conditions, by words."""

    watch: Watch
    points: Mapping[int, Point]
    made_of: tuple[str, ...]
    left_out: str
    assumed: bool


_Series = tuple[int, int]  # (column, series): results that may be compared with each other


def read_watched(
    session: Session, project_id: int, run_ids: Sequence[int], watch: Watch, *, or_nothing: bool = False
) -> Watched:
    """The watched figure of every checkpoint of the runs that has it.

    Raises NothingToWatch where no score of the project is of it, unless `or_nothing` is good as well.
    """
    columns, metric_ids = read_columns(session, [project_id])
    wanted = {place for place, column in enumerate(columns) if _is_wanted(column, watch)}
    if not wanted and or_nothing:
        return Watched(watch, {}, (), "", False)
    if not wanted:
        known = sorted({column.benchmark.capability or column.name for column in columns})
        raise NothingToWatch(
            f"No score of {watch.words!r} is recorded in this project. There are: {', '.join(known[:20]) or 'none'}."
        )
    metrics = {metric: place for metric, place in metric_ids.items() if place in wanted}
    found = _read(session, project_id, run_ids, metrics)
    members = _choose(columns, found)
    chosen = [key for member in members for key in member]
    sizes = _sample_counts(session, project_id, {series for _, series in chosen})
    points, assumed = _combine(columns, found, members, sizes)
    names = tuple(sorted({columns[place].name for place, _ in chosen}))
    return Watched(watch, points, names, _left_out(found, chosen), assumed)


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


def _read(
    session: Session, project_id: int, run_ids: Sequence[int], metrics: Mapping[int, int]
) -> dict[_Series, dict[int, tuple[float, float | None]]]:
    """(value, published error) by series and checkpoint: the checkpoint's own, else those of its lossless copies."""
    of_runs = Checkpoint.run_id.in_(list(run_ids))
    columns = (
        CurrentScore.checkpoint_id,
        CurrentScore.score_metric_id,
        CurrentScore.series_id,
        CurrentScore.value,
        CurrentScore.stderr,
    )
    finite = (CurrentScore.project_id == project_id, CurrentScore.value.is_not(None))
    of_metric = CurrentScore.score_metric_id.in_(list(metrics))
    own = (
        select(*columns)
        .join(
            Checkpoint,
            (Checkpoint.project_id == CurrentScore.project_id) & (Checkpoint.id == CurrentScore.checkpoint_id),
        )
        .where(*finite, of_metric, of_runs)
    )
    found: dict[_Series, dict[int, tuple[float, float | None]]] = {}
    for checkpoint_id, metric, series, value, stderr in session.execute(own):
        assert value is not None
        found.setdefault((metrics[metric], series), {})[checkpoint_id] = (value, stderr)
    copies = _copies(session, project_id, run_ids)
    for chunk in chunks(sorted(copies)):
        query = select(*columns).where(*finite, of_metric, CurrentScore.checkpoint_id.in_(chunk))
        for copy_id, metric, series, value, stderr in session.execute(query):
            assert value is not None
            for checkpoint_id in copies[copy_id]:
                found.setdefault((metrics[metric], series), {}).setdefault(checkpoint_id, (value, stderr))
    return found


def _copies(session: Session, project_id: int, run_ids: Sequence[int]) -> dict[int, list[int]]:
    """Converted or resharded copies one edge away, and the checkpoints of the runs that each stands for."""
    edge = (LineageEdge.project_id == project_id, LineageEdge.relation.in_([each.value for each in LOSSLESS]))
    query = (
        select(Checkpoint.id, LineageEdge.child_id, LineageEdge.parent_id)
        .join(LineageEdge, or_(LineageEdge.child_id == Checkpoint.id, LineageEdge.parent_id == Checkpoint.id))
        .where(Checkpoint.project_id == project_id, Checkpoint.run_id.in_(list(run_ids)), *edge)
    )
    found: dict[int, list[int]] = {}
    for own, child, parent in session.execute(query):
        found.setdefault(parent if own == child else child, []).append(own)
    return found


def _choose(
    columns: Sequence[Column], found: Mapping[_Series, Mapping[int, tuple[float, float | None]]]
) -> list[list[_Series]]:
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
    found: Mapping[_Series, Mapping[int, tuple[float, float | None]]],
    members: Sequence[Sequence[_Series]],
    sizes: Mapping[int, int | None],
) -> tuple[dict[int, Point], bool]:
    """The mean over the members, each the mean over its parts, of every checkpoint that has them all.

    Also whether any standard error in it is assumed.
    """
    chosen = [key for member in members for key in member]
    if not chosen:
        return {}, False
    everywhere = set.intersection(*(_on_scale(columns[key[0]], found[key]) for key in chosen))
    points, assumed = {}, False
    for checkpoint_id in everywhere:
        means: list[Point] = []
        for member in members:
            parts = []
            for key in member:
                value, published = found[key][checkpoint_id]
                column = columns[key[0]]
                error = choose_standard_error(value, published, sizes.get(key[1]), column.benchmark, column.metric)
                assumed = assumed or (error is not None and error.is_assumed)
                placed = orient(value, error.value if error else None, column.benchmark, column.metric)
                parts.append(Point(placed.value, placed.stderr))
            means.append(_mean(parts))
        points[checkpoint_id] = _mean(means)
    return points, assumed


def _mean(points: Sequence[Point]) -> Point:
    """Of independent figures; without an error where one of them has none."""
    known = [point.stderr for point in points if point.stderr is not None]
    stderr = math.sqrt(math.fsum(each**2 for each in known)) / len(points) if len(known) == len(points) else None
    return Point(math.fsum(point.value for point in points) / len(points), stderr)


def _on_scale(column: Column, scores: Mapping[int, tuple[float, float | None]]) -> set[int]:
    """The checkpoints whose score can be of the benchmark's scale; one that cannot is not rescaled by guess."""
    ids = list(scores)
    outside = off_scale(np.array([scores[each][0] for each in ids], dtype=float), column.benchmark)
    return {each for each, is_outside in zip(ids, outside, strict=True) if not is_outside}


def _left_out(found: Mapping[_Series, Mapping[int, object]], chosen: Sequence[_Series]) -> str:
    """In words, how many checkpoints have results only under other conditions than the chosen ones."""
    columns = Counter(place for place, _ in found)
    others = {
        checkpoint_id
        for key, members in found.items()
        if key not in chosen and columns[key[0]] > 1 and any(place == key[0] for place, _ in chosen)
        for checkpoint_id in members
    }
    others -= {checkpoint_id for key in chosen for checkpoint_id in found[key]}
    return f"{len(others)} checkpoints were evaluated under other conditions only" if others else ""


def scan(watched: Watched, path: Sequence[tuple[int, int]]) -> tuple[Onset | None, dict[int, float], str]:
    """(onset, P(already bad) by checkpoint id, why there is none) over a path of (step, checkpoint id), ascending.

    A checkpoint between two evaluated ones has the P(bad) of the next; one beyond the last evaluated has none.
    """
    series: dict[int, Point] = {}
    for step, checkpoint_id in path:
        point = watched.points.get(checkpoint_id)
        if point is not None and point.stderr is not None:
            series.setdefault(step, point)
    if not series:
        missing = "no evaluated checkpoint" if not watched.points else "no standard error is known"
        return None, {}, f"{watched.watch.words} cannot be scanned for a fall: {missing}"
    steps = sorted(series)
    errors = [max(series[step].stderr or 0.0, 1e-9) for step in steps]
    onset = find_onset(steps, [series[step].value for step in steps], errors)
    if not all(math.isfinite(each) for each in onset.p_bad):
        return onset, {}, onset.sentence
    bad: dict[int, float] = {}
    places = iter(zip(steps, onset.p_bad, strict=True))
    current = next(places, None)
    for step, checkpoint_id in path:
        while current is not None and current[0] < step:
            current = next(places, None)
        if current is not None:
            bad[checkpoint_id] = current[1]
    return onset, bad, ""
