"""The current scores of projects, read into a table of numbers: a few statements however many checkpoints there are."""

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sqlalchemy import ColumnElement, Select, and_, select
from sqlalchemy.orm import Session

from registry.evals.catalogue import Benchmark, catalogue
from registry.evals.columns import Column, ScoreTable, with_wholes
from registry.evals.percentiles import Booleans, Floats, Integers
from registry.filters import tables
from registry.models import Benchmark as BenchmarkRow
from registry.models import LineageEdge, ScoreMetric
from registry.types import LOSSLESS, CheckpointState, Direction
from registry.upsert import chunks

_ATTEMPT, _CHECKPOINT, _SCORE = tables.attempt, tables.checkpoint, tables.current_score

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
    scores = _finite_scores(session, project_ids, ids)
    checkpoints, runs, live = _checkpoints(session, project_ids, scores[0], include)
    at = np.searchsorted(checkpoints, scores[0])
    known = at < len(checkpoints)
    known[known] = checkpoints[at[known]] == scores[0][known]
    values = np.full((len(checkpoints), len(wanted)), np.nan)
    values[at[known], scores[1][known]] = scores[2][known]
    table = ScoreTable(checkpoints, runs, live, tuple(wanted), values, np.zeros(values.shape, dtype=bool))
    return with_wholes(_with_copies(session, project_ids, table))


def _finite_scores(
    session: Session, project_ids: Collection[int] | None, ids: MetricIds
) -> tuple[Integers, Integers, Floats]:
    """(checkpoint, place of the column, value) of every finite score, from the index of values alone.

    Joined to `checkpoint` in one statement, SQLite without statistics chose a plan that took two minutes for 80,000
    scores; apart, both are walks along one index.
    """
    found: list[tuple[int, int, float]] = []
    for chunk in chunks(ids):
        query = select(_SCORE.c.checkpoint_id, _SCORE.c.score_metric_id, _SCORE.c.value).where(
            *within(_SCORE.c.project_id, project_ids), _SCORE.c.score_metric_id.in_(chunk), _SCORE.c.value.is_not(None)
        )
        found += session.execute(query).all()
    return (
        np.fromiter((row[0] for row in found), np.int64, len(found)),
        np.fromiter((ids[row[1]] for row in found), np.int64, len(found)),
        np.fromiter((row[2] for row in found), np.float64, len(found)),
    )


def _checkpoints(
    session: Session, project_ids: Collection[int] | None, scored: Integers, include: int | None
) -> tuple[Integers, Integers, Booleans]:
    """(ids, runs, whether live) of the live checkpoints that have a score, and of `include`, in the order of ids."""
    query = select(
        _CHECKPOINT.c.id, _CHECKPOINT.c.run_id, _CHECKPOINT.c.attempt_id, _CHECKPOINT.c.step, _CHECKPOINT.c.state
    )
    rows = _live_rows(session, project_ids, query.where(*within(_CHECKPOINT.c.project_id, project_ids)), include)
    ids, runs, live = (np.array([row[part] for row in rows], dtype=np.int64) for part in range(3))
    order = np.argsort(ids)
    order = order[np.isin(ids[order], scored)]
    return ids[order], runs[order], live[order].astype(bool)


def _live_rows(
    session: Session, project_ids: Collection[int] | None, query: Select[Any], include: int | None = None
) -> list[tuple[int, int, bool]]:
    """(id, run, whether live) of the checkpoints selected that are live, and of `include`.

    Live is committed, and on the path that the newest attempt stands on: few attempts end before their last step.
    """
    ended = select(_ATTEMPT.c.id, _ATTEMPT.c.live_through_step).where(
        *within(_ATTEMPT.c.project_id, project_ids), _ATTEMPT.c.live_through_step.is_not(None)
    )
    last = {row.id: row.live_through_step for row in session.execute(ended)}
    committed = CheckpointState.COMMITTED.value
    return [
        (number, run, live)
        for number, run, attempt, step, state in session.execute(query)
        if (live := state == committed and step <= last.get(attempt, step)) or number == include
    ]


def within(column: Any, project_ids: Collection[int] | None) -> list[ColumnElement[bool]]:
    """The condition that a row is of these projects; none where every project is meant."""
    return [] if project_ids is None else [column.in_(sorted(project_ids))]


def _with_copies(session: Session, project_ids: Collection[int] | None, table: ScoreTable) -> ScoreTable:
    query = select(LineageEdge.child_id, LineageEdge.parent_id).where(
        LineageEdge.relation.in_([relation.value for relation in LOSSLESS])
    )
    if project_ids is not None:
        query = query.where(LineageEdge.project_id.in_(sorted(project_ids)))
    groups = _joined_groups([(child, parent) for child, parent in session.execute(query)])
    if not groups:
        return table
    table = _with_rows(session, project_ids, table, {member for group in groups for member in group})
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


def _with_rows(
    session: Session, project_ids: Collection[int] | None, table: ScoreTable, members: Collection[int]
) -> ScoreTable:
    """The table with rows for live checkpoints that have no score of their own."""
    missing = sorted(set(members) - set(table.checkpoints.tolist()))
    found: dict[int, int] = {}
    for chunk in chunks(missing):
        query = select(
            _CHECKPOINT.c.id, _CHECKPOINT.c.run_id, _CHECKPOINT.c.attempt_id, _CHECKPOINT.c.step, _CHECKPOINT.c.state
        )
        rows = _live_rows(session, project_ids, query.where(_CHECKPOINT.c.id.in_(chunk)))
        found.update((number, run) for number, run, _ in rows)
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
