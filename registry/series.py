"""Curves such as the loss: numbers over steps, kept in compressed chunks, never a row per point.

A chunk holds ascending steps as deltas and values as 64-bit floats, so that NaN and infinity come back as they went
in. Sending a chunk again adds nothing; where chunks overlap, the one that arrived last speaks for a step.
"""

import struct
import zlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, pairwise
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import attempts, watching
from registry.attempts import AttemptNotFound
from registry.errors import FieldError, Invalid
from registry.ids import new_id, to_text
from registry.models import Attempt, Run, SeriesChunk
from registry.runs import RunNotFound
from registry.upsert import insert_missing

# The names that trainers log the loss under, the likeliest first: one of them speaks for a run.
LOSS_NAMES: Final = ("loss", "train/loss", "train_loss", "lm loss", "lm-loss", "lm_loss", "training_loss", "loss/train")


class BadSeries(Invalid):
    code = "bad-series"
    title = "A curve cannot be kept like this"


@dataclass(frozen=True)
class Points:
    """A stretch of one curve: as many values as steps, steps strictly ascending."""

    name: str
    steps: Sequence[int]
    values: Sequence[float]
    attempt: int | None = None


@dataclass(frozen=True)
class Curve:
    """One curve of one attempt, merged from its chunks."""

    attempt: int
    name: str
    steps: Sequence[int]
    values: Sequence[float]


def record_series(session: Session, run_id: int, stretches: Sequence[Points]) -> int:
    """Keep stretches of a run's curves; gives the number of points. Raises RunNotFound, AttemptNotFound, BadSeries."""
    run = session.get(Run, run_id)
    if run is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}.")
    known = _attempts(session, run, {points.attempt for points in stretches if points.attempt is not None})
    rows = []
    for index, points in enumerate(stretches):
        number = max(known) if points.attempt is None else points.attempt
        if number not in known:
            message = f"run {to_text(run_id)} has no attempt {number}"
            raise AttemptNotFound(f"Cannot record: {message}.", errors=[FieldError(f"/{index}/attempt", message)])
        _check(points, f"/{index}")
        rows.append(_row(run.project_id, known[number], points))
    insert_missing(session, SeriesChunk, rows)
    if any(points.name in LOSS_NAMES for points in stretches):
        watching.loss_arrived(session, run.project_id, run_id)
    return sum(len(points.steps) for points in stretches)


def read_series(session: Session, project_id: int, run_id: int, names: Sequence[str] | None = None) -> list[Curve]:
    """The curves of a run, by name and attempt."""
    query = (
        select(SeriesChunk, Attempt.number)
        .join(Attempt, Attempt.id == SeriesChunk.attempt_id)
        .where(SeriesChunk.project_id == project_id, Attempt.project_id == project_id, Attempt.run_id == run_id)
        .order_by(SeriesChunk.name, Attempt.number, SeriesChunk.arrival)
    )
    if names is not None:
        query = query.where(SeriesChunk.name.in_(names))
    merged: dict[tuple[str, int], dict[int, float]] = {}
    for chunk, number in session.execute(query):
        merged.setdefault((chunk.name, number), {}).update(zip(*_decode(chunk.body), strict=True))
    return [
        Curve(number, name, tuple(sorted(points)), tuple(points[step] for step in sorted(points)))
        for (name, number), points in merged.items()
    ]


def _attempts(session: Session, run: Run, named: Collection[int]) -> dict[int, int]:
    """Attempt number to id. The first is made where there is none; an older one, where its curve arrives before it."""
    query = select(Attempt.number, Attempt.id).where(Attempt.project_id == run.project_id, Attempt.run_id == run.id)
    known = dict(session.execute(query).all())
    if not known:
        attempts.first_attempts(session, run.project_id, [run.id])
    older = [(run.id, number) for number in sorted(named) if number not in known and number < max(known, default=1)]
    attempts.plain_attempts(session, run.project_id, older)
    return dict(session.execute(query).all()) if older or not known else known


def _check(points: Points, pointer: str) -> None:
    message = None
    if len(points.steps) != len(points.values):
        message = f"{len(points.steps)} steps but {len(points.values)} values"
    elif not points.steps:
        message = "it has no points"
    elif any(later <= earlier for earlier, later in pairwise(points.steps)):
        message = "its steps must ascend; steps that repeat belong to another attempt"
    if message:
        raise BadSeries(f"The curve {points.name!r} cannot be kept: {message}.", errors=[FieldError(pointer, message)])


def _row(project_id: int, attempt_id: int, points: Points) -> dict[str, Any]:
    body = _encode(points.steps, points.values)
    return {
        "project_id": project_id,
        "attempt_id": attempt_id,
        "name": points.name,
        "first_step": points.steps[0],
        "digest": blake2b(body, digest_size=16).digest(),
        "last_step": points.steps[-1],
        "count": len(points.steps),
        "arrival": new_id(),
        "body": body,
    }


def _encode(steps: Sequence[int], values: Sequence[float]) -> bytes:
    count = len(steps)
    deltas = [steps[0], *(later - earlier for earlier, later in pairwise(steps))]
    return struct.pack("<I", count) + zlib.compress(struct.pack(f"<{count}q{count}d", *deltas, *values), 6)


def _decode(body: bytes) -> tuple[list[int], list[float]]:
    (count,) = struct.unpack_from("<I", body)
    numbers = struct.unpack(f"<{count}q{count}d", zlib.decompress(body[4:]))
    return list(accumulate(numbers[:count])), list(numbers[count:])
