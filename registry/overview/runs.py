"""Runs for people: how many checkpoints, which is the newest, which attempt is under way."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Subquery, func, literal, select, tuple_
from sqlalchemy.orm import Session

from registry import keyset
from registry.db import join_number
from registry.keyset import Key, KeyType
from registry.models import Attempt, Checkpoint, Project, Run
from registry.types import CheckpointState
from registry.upsert import any_of

SORTS: Final = ("saved", "name", "checkpoints", "size")


@dataclass(frozen=True, slots=True)
class RunOverview:
    """`newest_id`: the last checkpoint in the order of (attempt, step), committed or pending.

    `attempts` counts them; `attempt` is the newest one's number, which may be larger: numbers may have gaps.
    `state` is the newest attempt's; None where nobody opened it, so that its state is only a default.
    """

    id: int
    project_id: int
    project: str
    name: str
    owner: str | None
    parameter_count: int | None
    checkpoints: int
    saved_at: datetime | None
    newest_id: int | None
    attempts: int
    attempt: int | None
    state: str | None
    heartbeat_at: datetime | None
    heartbeat_step: int | None


@dataclass(frozen=True, slots=True)
class RunPage:
    rows: tuple[RunOverview, ...]
    next_after: list[Any] | None


@dataclass(frozen=True, slots=True)
class Totals:
    """How much there is within the projects that a caller may see."""

    runs: int
    projects: int
    checkpoints: bool
    newest_id: int | None


def list_run_overviews(
    session: Session,
    *,
    project_ids: Collection[int] | None,
    contains: str = "",
    sort: str = "saved",
    after: Sequence[Any] | None = None,
    limit: int = 50,
) -> RunPage:
    """A page of runs. Those without a checkpoint or a size come last; ties fall to the newest run.

    `contains` is a part of the name, in any case. `after` is the `next_after` of the page before.
    """
    counts = _counts(project_ids)
    keys = _keys(counts, sort if sort in SORTS else "saved")
    query = (
        select(Run, Project.name, counts.c.checkpoints, counts.c.saved_at, *(key.expression for key in keys))
        .join(Project, Project.id == Run.project_id)
        .outerjoin(counts, counts.c.run_id == Run.id)
    )
    if project_ids is not None:
        query = query.where(Run.project_id.in_(project_ids))
    if contains:
        part = contains.lower().replace("\0", "\N{SYMBOL FOR NULL}")  # no name has it; PostgreSQL refuses NUL
        query = query.where(func.lower(Run.name).contains(part, autoescape=True))
    if after is not None:
        query = query.where(keyset.after(keys, keyset.from_plain(keys, after)))
    found = [tuple(row) for row in session.execute(query.order_by(*(key.clause for key in keys)).limit(limit + 1))]
    page = found[:limit]
    attempts, newest = _attempts(session, [row[0] for row in page]), _newest(session, [row[0] for row in page])
    rows = tuple(_overview(row, attempts, newest) for row in page)
    return RunPage(rows, keyset.to_plain(page[-1][4:]) if len(found) > limit else None)


def get_run_overview(session: Session, run_id: int) -> RunOverview | None:
    """The same of one run; None where there is no such run."""
    run = session.execute(
        select(Run, Project.name).join(Project, Project.id == Run.project_id).where(Run.id == run_id)
    ).one_or_none()
    if run is None:
        return None
    counted = select(func.count(), func.max(Checkpoint.saved_at)).where(
        Checkpoint.project_id == run[0].project_id,
        Checkpoint.run_id == run_id,
        Checkpoint.state != CheckpointState.DELETED.value,
    )
    row = (*run, *session.execute(counted).one())
    return _overview(row, _attempts(session, [run[0]]), _newest(session, [run[0]]))


def count_registry(session: Session, project_ids: Collection[int] | None) -> Totals:
    """Runs and projects, and the checkpoint saved last. Checkpoints are not counted: there may be millions."""
    runs = select(func.count(), func.count(Run.project_id.distinct())).select_from(Run)
    newest = select(Checkpoint.id).where(Checkpoint.state != CheckpointState.DELETED.value)
    if project_ids is not None:
        runs, newest = runs.where(Run.project_id.in_(project_ids)), newest.where(Checkpoint.project_id.in_(project_ids))
    amount, projects = session.execute(runs).one()
    last = session.scalars(newest.order_by(Checkpoint.saved_at.desc(), Checkpoint.id.desc()).limit(1)).first()
    return Totals(amount, projects, last is not None, last)


def has_runs(session: Session, project_ids: Collection[int] | None) -> bool:
    """Whether there is any run in these projects (None: all)."""
    query = select(Run.id) if project_ids is None else select(Run.id).where(Run.project_id.in_(project_ids))
    return session.scalars(query.limit(1)).first() is not None


def _counts(project_ids: Collection[int] | None) -> Subquery:
    query = select(
        Checkpoint.run_id, func.count().label("checkpoints"), func.max(Checkpoint.saved_at).label("saved_at")
    ).where(Checkpoint.state != CheckpointState.DELETED.value)
    if project_ids is not None:
        query = query.where(Checkpoint.project_id.in_(project_ids))
    return query.group_by(Checkpoint.project_id, Checkpoint.run_id).subquery("counts")


def _keys(counts: Subquery, sort: str) -> list[Key]:
    first = {
        "saved": Key(counts.c.saved_at, KeyType.TIME, descending=True),
        "name": Key(Run.name, KeyType.TEXT, nullable=False),
        "checkpoints": Key(func.coalesce(counts.c.checkpoints, 0), KeyType.INTEGER, descending=True, nullable=False),
        "size": Key(Run.parameter_count, KeyType.INTEGER, descending=True),
    }[sort]
    last = (Key(Run.created_at, KeyType.TIME, True, False), Key(Run.id, KeyType.INTEGER, True, False))
    return [first, *last]


def _attempts(session: Session, runs: Sequence[Run]) -> dict[int, tuple[Attempt, int]]:
    """The newest attempt of each run, and how many there are."""
    if not runs:
        return {}
    numbers = (
        select(Attempt.run_id, func.max(Attempt.number).label("number"), func.count().label("amount"))
        .where(any_of((Attempt.project_id, Attempt.run_id), [(run.project_id, run.id) for run in runs]))
        .group_by(Attempt.run_id)
        .subquery()
    )
    same = (numbers.c.run_id == Attempt.run_id) & (numbers.c.number == Attempt.number)
    own = Attempt.project_id.in_({run.project_id for run in runs})
    found = session.execute(select(Attempt, numbers.c.amount).join(numbers, same).where(own))
    return {attempt.run_id: (attempt, amount) for attempt, amount in found}


def _newest(session: Session, runs: Sequence[Run]) -> dict[int, int]:
    """Each run's last checkpoint, one step down its index."""
    if not runs:
        return {}
    last = (
        select(Checkpoint.id)
        .where(
            Checkpoint.project_id == Run.project_id,
            Checkpoint.run_id == Run.id,
            Checkpoint.state != CheckpointState.DELETED.value,
        )
        .order_by(Checkpoint.attempt_number.desc(), Checkpoint.step.desc(), Checkpoint.kind)
        .limit(1)
        .correlate(Run)
        .scalar_subquery()
    )
    found = session.execute(select(Run.id, last).where(Run.id.in_([run.id for run in runs])))
    return {run_id: checkpoint_id for run_id, checkpoint_id in found if checkpoint_id is not None}


def _overview(row: Sequence[Any], attempts: dict[int, tuple[Attempt, int]], newest: dict[int, int]) -> RunOverview:
    run, project, checkpoints, saved_at = row[:4]
    attempt, amount = attempts.get(run.id, (None, 0))
    return RunOverview(
        id=run.id,
        project_id=run.project_id,
        project=project,
        name=run.name,
        owner=run.owner,
        parameter_count=run.parameter_count,
        checkpoints=checkpoints or 0,
        saved_at=saved_at,
        newest_id=newest.get(run.id),
        attempts=amount,
        attempt=attempt.number if attempt else None,
        state=attempt.state if attempt and _is_reported(attempt) else None,
        heartbeat_at=attempt.heartbeat_at if attempt else None,
        heartbeat_step=attempt.heartbeat_step if attempt else None,
    )


def _is_reported(attempt: Attempt) -> bool:
    """Whether somebody opened the attempt or spoke of it since; one made for a backfill is only a place to hang on."""
    said = (attempt.key, attempt.started_at, attempt.heartbeat_at, attempt.ended_at, attempt.resumed_from_step)
    return attempt.state != "running" or attempt.restart or any(each is not None for each in said)


@dataclass(frozen=True, slots=True)
class SavedStep:
    """One checkpoint as a mark on the run's step axis. A non-finite loss is a float."""

    checkpoint_id: int
    attempt: int
    step: int
    superseded: bool
    loss: float | None


def saved_steps(session: Session, project_id: int, run_id: int, *, limit: int = 5000) -> list[SavedStep]:
    """The newest checkpoints of a run in the order of (attempt, step), for its plots."""
    query = _saved(project_id, run_id).order_by(Checkpoint.attempt_number.desc(), Checkpoint.step.desc()).limit(limit)
    return [_saved_step(*row) for row in reversed(session.execute(query).all())]


def neighbours(session: Session, checkpoint_id: int) -> tuple[SavedStep | None, SavedStep | None]:
    """The checkpoints before and after one in the order of its run; None at an end, or where it does not exist."""
    own = session.get(Checkpoint, checkpoint_id)
    if own is None:
        return None, None
    order = (Checkpoint.attempt_number, Checkpoint.step, Checkpoint.kind)
    place = tuple_(*(literal(value) for value in (own.attempt_number, own.step, own.kind)))
    query = _saved(own.project_id, own.run_id).limit(1)
    before = query.where(tuple_(*order) < place).order_by(*(column.desc() for column in order))
    after = query.where(tuple_(*order) > place).order_by(*order)
    found = [session.execute(each).one_or_none() for each in (before, after)]
    first, second = (None if row is None else _saved_step(*row) for row in found)
    return first, second


def _saved_step(
    identity: int, attempt: int, step: int, live: int | None, loss: float | None, special: str | None
) -> SavedStep:
    return SavedStep(identity, attempt, step, live is not None and step > live, join_number(loss, special))


def _saved(project_id: int, run_id: int) -> Any:
    return (
        select(
            Checkpoint.id,
            Checkpoint.attempt_number,
            Checkpoint.step,
            Attempt.live_through_step,
            Checkpoint.loss,
            Checkpoint.loss_special,
        )
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(
            Checkpoint.project_id == project_id,
            Checkpoint.run_id == run_id,
            Checkpoint.state != CheckpointState.DELETED.value,
        )
    )
