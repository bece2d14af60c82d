"""The newest stretch of a run's training loss along its live path, for whoever looks for spikes in it."""

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.percentiles import Floats, Integers
from registry.models import Attempt, SeriesChunk
from registry.series import LOSS_NAMES

MOST_POINTS: Final = 20_000  # the newest ones: a spike further back was met long ago


@dataclass(frozen=True, slots=True, eq=False)
class LossCurve:
    """One curve over ascending steps, without what newer attempts left behind. `is_cut`: older points are not in it."""

    name: str
    steps: Integers
    values: Floats
    is_cut: bool = False


def read_loss(
    session: Session,
    project_id: int,
    run_id: int,
    through: Mapping[tuple[int, int], int | None],
    *,
    at_or_before_step: int | None = None,
) -> LossCurve | None:
    """The loss of the run's live path; None where none is recorded. `through`: per (run, attempt) the last live step.

    Of chunks that overlap the last to arrive speaks for a step, as in `registry.series`.
    """
    # Without the bodies: a run of months has thousands of chunks, of which the newest few are read.
    query = (
        select(
            SeriesChunk.name,
            Attempt.number,
            SeriesChunk.attempt_id,
            SeriesChunk.first_step,
            SeriesChunk.count.label("points"),
        )
        .join(Attempt, (Attempt.project_id == SeriesChunk.project_id) & (Attempt.id == SeriesChunk.attempt_id))
        .where(
            SeriesChunk.project_id == project_id,
            Attempt.project_id == project_id,
            Attempt.run_id == run_id,
            SeriesChunk.name.in_(LOSS_NAMES),
        )
        .order_by(Attempt.number.desc(), SeriesChunk.first_step.desc())
    )
    rows = [row for row in session.execute(query) if _is_live(through, run_id, row, at_or_before_step)]
    name = min((row.name for row in rows), key=LOSS_NAMES.index, default=None)
    if name is None:
        return None
    starts, points = [], 0
    for row in rows:
        if row.name == name and points < MOST_POINTS:
            starts.append((row.attempt_id, row.first_step))
            points += row.points
    curve = _decoded(session, project_id, run_id, name, starts, through, at_or_before_step)
    return replace(curve, is_cut=len(starts) < sum(row.name == name for row in rows))


def _is_live(
    through: Mapping[tuple[int, int], int | None], run_id: int, row: object, at_or_before_step: int | None
) -> bool:
    first: int = row.first_step  # type: ignore[attr-defined]
    last = through.get((run_id, row.number))  # type: ignore[attr-defined]
    return (last is None or first <= last) and (at_or_before_step is None or first <= at_or_before_step)


def _decoded(
    session: Session,
    project_id: int,
    run_id: int,
    name: str,
    starts: list[tuple[int, int]],
    through: Mapping[tuple[int, int], int | None],
    at_or_before_step: int | None,
) -> LossCurve:
    attempts = sorted({attempt for attempt, _ in starts})
    oldest = {attempt: min(first for other, first in starts if other == attempt) for attempt in attempts}
    query = (
        select(Attempt.number, SeriesChunk.attempt_id, SeriesChunk.first_step, SeriesChunk.body)
        .join(Attempt, (Attempt.project_id == SeriesChunk.project_id) & (Attempt.id == SeriesChunk.attempt_id))
        .where(
            SeriesChunk.project_id == project_id,
            SeriesChunk.attempt_id.in_(attempts),
            SeriesChunk.name == name,
            SeriesChunk.first_step >= min(oldest.values()),
        )
        .order_by(Attempt.number, SeriesChunk.arrival)
    )
    steps, values = [np.empty(0, np.int64)], [np.empty(0)]
    for row in session.execute(query):
        if row.first_step < oldest[row.attempt_id]:
            continue
        at, found = decode(row.body)
        last = through.get((run_id, row.number))
        kept = np.ones(len(at), dtype=bool) if last is None else at <= last
        if at_or_before_step is not None:
            kept &= at <= at_or_before_step
        steps.append(at[kept])
        values.append(found[kept])
    # The last to arrive, and the newest attempt, stand last; of each step the last stays.
    every, value = np.concatenate(steps)[::-1], np.concatenate(values)[::-1]
    unique, first = np.unique(every, return_index=True)
    return LossCurve(name, unique, value[first])


def decode(body: bytes) -> tuple[Integers, Floats]:
    """The steps and values of a chunk (`registry.series` writes them), as columns."""
    (count,) = struct.unpack_from("<I", body)
    raw = zlib.decompress(body[4:])
    deltas = np.frombuffer(raw, dtype="<i8", count=count)
    return np.cumsum(deltas).astype(np.int64), np.frombuffer(raw, dtype="<f8", count=count, offset=8 * count).copy()
