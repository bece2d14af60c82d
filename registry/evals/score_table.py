"""The current scores of projects, read into a table of numbers: four statements however many checkpoints there are."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from registry.evals.catalogue import Benchmark, catalogue
from registry.evals.columns import Column, ScoreTable, with_wholes
from registry.evals.percentiles import Integers
from registry.models import Attempt, Checkpoint, CurrentScore, LineageEdge, ScoreMetric
from registry.models import Benchmark as BenchmarkRow
from registry.types import LOSSLESS, CheckpointState, Direction

MetricIds = dict[int, int]  # score_metric id -> the place of its column


def read_columns(session: Session, project_ids: Collection[int] | None) -> tuple[tuple[Column, ...], MetricIds]:
    """Every (benchmark, metric, filter) that occurs in the projects (None: all), with what the projects say of it."""
    query = select(
        ScoreMetric.id,
        BenchmarkRow.name,
        ScoreMetric.metric,
        ScoreMetric.filter,
        BenchmarkRow.capability,
        BenchmarkRow.direction,
        BenchmarkRow.scale,
        BenchmarkRow.chance,
        BenchmarkRow.sample_count,
        BenchmarkRow.preferred_metrics,
    ).join(
        BenchmarkRow,
        and_(BenchmarkRow.project_id == ScoreMetric.project_id, BenchmarkRow.id == ScoreMetric.benchmark_id),
    )
    if project_ids is not None:
        query = query.where(ScoreMetric.project_id.in_(sorted(project_ids)))
    places: dict[tuple[str, str, str], int] = {}
    columns: list[Column] = []
    metric_ids: MetricIds = {}
    for row in session.execute(query.order_by(ScoreMetric.project_id, ScoreMetric.id)):
        key = (row.name, row.metric, row.filter)
        if key not in places:
            places[key] = len(columns)
            columns.append(Column(*key, _benchmark(row)))
        metric_ids[row.id] = places[key]
    return tuple(columns), metric_ids


def _benchmark(row: Any) -> Benchmark:
    """The shipped row, with what the project has set instead. A perplexity keeps its own direction and scale."""
    shipped = catalogue().for_metric(row.name, row.metric, row.filter)
    own = {"capability": row.capability, "chance": row.chance, "sample_count": row.sample_count}
    if row.preferred_metrics is not None:
        own["metrics"] = tuple((metric, filter) for metric, filter in json.loads(row.preferred_metrics))
    if row.direction is not None:
        own["direction"] = Direction(row.direction)
    own["scale"] = row.scale
    return replace(shipped, **{name: value for name, value in own.items() if value is not None})


def read_table(
    session: Session,
    project_ids: Collection[int] | None,
    wanted: Sequence[Column],
    columns: Sequence[Column],
    metric_ids: MetricIds,
    *,
    include: int | None = None,
) -> ScoreTable:
    """The current scores in the `wanted` columns of every live committed checkpoint that has one, and of `include`.

    A checkpoint without a score of its own takes that of a lossless copy (converted, resharded), marked in `via`.
    Non-finite scores are missing here: they are never ranked.
    """
    place_of = {column: place for place, column in enumerate(wanted)}
    ids = {metric: place_of[columns[place]] for metric, place in metric_ids.items() if columns[place] in place_of}
    rows = _score_rows(session, project_ids, list(ids), include)
    checkpoints, runs, live, row_of = _index(rows)
    values = np.full((len(checkpoints), len(wanted)), np.nan)
    if len(rows):
        table_place = np.array([ids[metric] for metric in rows[:, 2].astype(np.int64)], dtype=np.int64)
        values[row_of, table_place] = rows[:, 3].astype(np.float64)
    table = ScoreTable(checkpoints, runs, live, tuple(wanted), values, np.zeros(values.shape, dtype=bool))
    return with_wholes(_with_copies(session, project_ids, table))


def is_live() -> ColumnElement[bool]:
    """Committed, and on the path that the newest attempt stands on; needs `checkpoint` joined to `attempt`."""
    return and_(
        Checkpoint.state == CheckpointState.COMMITTED.value,
        or_(Attempt.live_through_step.is_(None), Checkpoint.step <= Attempt.live_through_step),
    )


def _score_rows(
    session: Session, project_ids: Collection[int] | None, metric_ids: list[int], include: int | None
) -> Any:
    """(checkpoint, run, metric, value, live) of each finite score, as an array of objects (n, 5)."""
    if not metric_ids:
        return np.empty((0, 5), dtype=object)
    live = is_live().label("live")
    query = (
        select(CurrentScore.checkpoint_id, Checkpoint.run_id, CurrentScore.score_metric_id, CurrentScore.value, live)
        .join(
            Checkpoint,
            and_(Checkpoint.project_id == CurrentScore.project_id, Checkpoint.id == CurrentScore.checkpoint_id),
        )
        .join(Attempt, and_(Attempt.project_id == Checkpoint.project_id, Attempt.id == Checkpoint.attempt_id))
        .where(CurrentScore.score_metric_id.in_(metric_ids), CurrentScore.value.is_not(None))
        .where(is_live() if include is None else or_(is_live(), Checkpoint.id == include))
    )
    if project_ids is not None:
        query = query.where(CurrentScore.project_id.in_(sorted(project_ids)))
    found = [tuple(row) for row in session.execute(query)]
    return np.array(found, dtype=object).reshape(len(found), 5)


def _index(rows: Any) -> tuple[Integers, Integers, Any, Integers]:
    """(checkpoints, runs, live) in the order of their ids, and for each row of scores its place there."""
    checkpoints, first, row_of = np.unique(rows[:, 0].astype(np.int64), return_index=True, return_inverse=True)
    return checkpoints, rows[first, 1].astype(np.int64), rows[first, 4].astype(bool), row_of.reshape(-1)


def _with_copies(session: Session, project_ids: Collection[int] | None, table: ScoreTable) -> ScoreTable:
    query = select(LineageEdge.child_id, LineageEdge.parent_id).where(
        LineageEdge.relation.in_([relation.value for relation in LOSSLESS])
    )
    if project_ids is not None:
        query = query.where(LineageEdge.project_id.in_(sorted(project_ids)))
    groups = _joined_groups([(child, parent) for child, parent in session.execute(query)])
    if not groups:
        return table
    table = _with_rows(session, table, {member for group in groups for member in group})
    row_of = {int(checkpoint): place for place, checkpoint in enumerate(table.checkpoints)}
    values, via = table.values.copy(), table.via.copy()
    for group in groups:
        rows = [row_of[member] for member in sorted(group) if member in row_of]
        known = table.values[rows]
        for place in np.flatnonzero(np.isfinite(known).any(axis=0)):
            missing = [row for row in rows if not np.isfinite(table.values[row, place])]
            values[missing, place] = known[np.flatnonzero(np.isfinite(known[:, place]))[0], place]
            via[missing, place] = True
    return replace(table, values=values, via=via)


def _joined_groups(edges: Sequence[tuple[int, int]]) -> list[set[int]]:
    """The sets of checkpoints that edges hold together."""
    group_of: dict[int, set[int]] = {}
    for child, parent in edges:
        merged = group_of.get(child, {child}) | group_of.get(parent, {parent})
        group_of.update(dict.fromkeys(merged, merged))
    return list({id(group): group for group in group_of.values()}.values())


def _with_rows(session: Session, table: ScoreTable, members: Collection[int]) -> ScoreTable:
    """The table with rows for live checkpoints that have no score of their own."""
    missing = sorted(set(members) - set(table.checkpoints.tolist()))
    found: dict[int, int] = {}
    for start in range(0, len(missing), 500):
        query = (
            select(Checkpoint.id, Checkpoint.run_id)
            .join(Attempt, and_(Attempt.project_id == Checkpoint.project_id, Attempt.id == Checkpoint.attempt_id))
            .where(Checkpoint.id.in_(missing[start : start + 500]), is_live())
        )
        found.update((row.id, row.run_id) for row in session.execute(query))
    if not found:
        return table
    blank = np.full((len(found), len(table.columns)), np.nan)
    checkpoints = np.concatenate([table.checkpoints, np.array(list(found), dtype=np.int64)])
    order = np.argsort(checkpoints)
    return replace(
        table,
        checkpoints=checkpoints[order],
        runs=np.concatenate([table.runs, np.array(list(found.values()), dtype=np.int64)])[order],
        reference=np.concatenate([table.reference, np.ones(len(found), dtype=bool)])[order],
        values=np.vstack([table.values, blank])[order],
        via=np.vstack([table.via, np.zeros(blank.shape, dtype=bool)])[order],
    )
