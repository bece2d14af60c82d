"""Runs for people: how many checkpoints, which is the newest, which attempt is under way."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ScalarSelect, Subquery, func, literal, select, tuple_
from sqlalchemy.orm import Session

from registry import keyset
from registry.db import join_number
from registry.models import Attempt, Checkpoint, Incident, Project, Run
from registry.overview.run_order import (
    BY_ATTEMPT,
    ENDED,
    NEWEST_ATTEMPT,
    OF_RUN,
    SORTS,
    keys_of,
    last_saved,
    last_with_loss,
)
from registry.types import CheckpointState
from registry.upsert import any_of


@dataclass(frozen=True, slots=True)
class RunOverview:
    """`newest_id`: the last checkpoint in the order of (attempt, step), committed or pending.

    `attempts` counts them; `attempt` is the newest one's number, which may be larger: numbers may have gaps.
    `state` is the newest attempt's; None where nobody opened it, so that its state is only a default.
    `loss_id`: the last checkpoint in that order of which a loss is recorded. `open_incident_id`: of the newest
    interruption that nobody has closed and no save has ended; None where the newest attempt ended well.
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
    loss_id: int | None = None
    open_incident_id: int | None = None


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
    """A page of runs. Those that lack what they are ordered by come last; ties fall to the newest run.

    `sort` is one of SORTS, with a minus before it the other way round. `contains` is a part of the name, in any case.
    `after` is the `next_after` of the page before.
    """
    counts = _counts(project_ids)
    keys = keys_of(sort if sort.removeprefix("-") in SORTS else "saved", counts)
    query = (
        select(Run, Project.name, counts.c.checkpoints, counts.c.saved_at, *(key.expression for key in keys))
        .join(Project, Project.id == Run.project_id)
        .outerjoin(counts, counts.c.run_id == Run.id)
    )
    if sort.removeprefix("-") in BY_ATTEMPT:
        query = query.outerjoin(NEWEST_ATTEMPT, OF_RUN)
    if project_ids is not None:
        query = query.where(Run.project_id.in_(project_ids))
    if contains:
        part = contains.lower().replace("\0", "\N{SYMBOL FOR NULL}")  # no name has it; PostgreSQL refuses NUL
        query = query.where(func.lower(Run.name).contains(part, autoescape=True))
    if after is not None:
        query = query.where(keyset.after(keys, keyset.from_plain(keys, after)))
    found = [tuple(row) for row in session.execute(query.order_by(*(key.clause for key in keys)).limit(limit + 1))]
    page = found[:limit]
    return RunPage(_overviews(session, page), keyset.to_plain(page[-1][4:]) if len(found) > limit else None)


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
    return _overviews(session, [row])[0]


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


def _of_runs(session: Session, runs: Sequence[Run], wanted: ScalarSelect[Any]) -> dict[int, int]:
    """One id for each run that has it."""
    if not runs:
        return {}
    found = session.execute(select(Run.id, wanted).where(Run.id.in_([run.id for run in runs])))
    return {run_id: identity for run_id, identity in found if identity is not None}


def _overviews(session: Session, rows: Sequence[Sequence[Any]]) -> tuple[RunOverview, ...]:
    """Of (run, project, checkpoints, saved_at, ...): the same with what four statements find for all of them."""
    runs = [row[0] for row in rows]
    newest, losses = _of_runs(session, runs, last_saved(Checkpoint.id)), _of_runs(session, runs, last_with_loss())
    attempts, struck = _attempts(session, runs), _of_runs(session, runs, _open_incident())
    return tuple(_overview(row, attempts.get(row[0].id, (None, 0)), newest, losses, struck) for row in rows)


def _overview(
    row: Sequence[Any],
    attempt: tuple[Attempt | None, int],
    newest: Mapping[int, int],
    losses: Mapping[int, int],
    struck: Mapping[int, int],
) -> RunOverview:
    run, project, checkpoints, saved_at = row[:4]
    last, amount = attempt
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
        attempt=last.number if last else None,
        state=last.state if last and _is_reported(last) else None,
        heartbeat_at=last.heartbeat_at if last else None,
        heartbeat_step=last.heartbeat_step if last else None,
        loss_id=losses.get(run.id),
        open_incident_id=None if last and last.state in ENDED else struck.get(run.id),
    )


def _open_incident() -> ScalarSelect[Any]:
    return (
        select(Incident.id)
        .where(Incident.project_id == Run.project_id, Incident.run_id == Run.id, Incident.closed_at.is_(None))
        .order_by(Incident.occurred_at.desc(), Incident.id.desc())
        .limit(1)
        .correlate(Run)
        .scalar_subquery()
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
