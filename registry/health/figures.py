"""What of a registry is worth watching from outside, as numbers of this moment."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from registry.db import now
from registry.jobs.workers import list_workers
from registry.models import Attempt, Checkpoint, Finding, Incident, Job, OutboxEvent, Project, Run
from registry.models.attempt import WATCHED
from registry.types import CheckpointState

MOST_RUNS: Final = 1_000  # that are named one by one, those first that were heard of last


@dataclass(frozen=True, slots=True)
class Running:
    """A running attempt that sends heartbeats. Ages in seconds; `saved_age` None: it has committed nothing yet."""

    project: str
    run: str
    attempt: int
    step: int | None
    heard_age: float
    saved_age: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """`incidents`: (project, kind, cause, how many are open); `findings`: (project, how many are open);
    `jobs`: (kind, state, how many wait or run); `events_age`: seconds that the oldest undelivered event has waited."""

    running: Sequence[Running]
    incidents: Sequence[tuple[str, str, str, int]]
    findings: Sequence[tuple[str, int]]
    jobs: Sequence[tuple[str, str, int]]
    events: int
    events_age: float
    workers: int


def read_figures(session: Session) -> Figures:
    """Every figure, from indexes of what is open, waits or runs: its cost does not grow with what is recorded."""
    at = now()
    count, since = session.execute(
        select(func.count(), func.min(OutboxEvent.created_at)).where(OutboxEvent.delivered_at.is_(None))
    ).one()
    return Figures(
        running=_running(session, at),
        incidents=_rows(
            session,
            select(Project.name, Incident.kind, Incident.cause, func.count())
            .select_from(Incident)
            .join(Project, Project.id == Incident.project_id)
            .where(Incident.closed_at.is_(None))
            .group_by(Project.name, Incident.kind, Incident.cause),
        ),
        findings=_rows(
            session,
            select(Project.name, func.count())
            .select_from(Finding)
            .join(Project, Project.id == Finding.project_id)
            .where(Finding.state == "open")
            .group_by(Project.name),
        ),
        jobs=_rows(
            session,
            select(Job.kind, Job.state, func.count())
            .where(Job.state.in_(("waiting", "running")))
            .group_by(Job.kind, Job.state),
        ),
        events=count,
        events_age=_age(since, at) or 0.0,
        workers=sum(row.alive for row in list_workers(session)),
    )


def _running(session: Session, at: datetime) -> list[Running]:
    newest = (
        select(Checkpoint.saved_at)
        .where(
            Checkpoint.project_id == Attempt.project_id,
            Checkpoint.attempt_id == Attempt.id,
            Checkpoint.state == CheckpointState.COMMITTED,
        )
        .order_by(Checkpoint.step.desc())
        .limit(1)
        .scalar_subquery()
    )
    query = (
        select(Project.name, Run.name, Attempt.number, Attempt.heartbeat_step, Attempt.heartbeat_at, newest)
        .join(Run, (Run.project_id == Attempt.project_id) & (Run.id == Attempt.run_id))
        .join(Project, Project.id == Attempt.project_id)
        .where(text(f"attempt.{WATCHED.replace(' AND ', ' AND attempt.')}"))
        .order_by(Attempt.heartbeat_at.desc())
        .limit(MOST_RUNS)
    )
    return [
        Running(project, run, attempt, step, _age(heard, at) or 0.0, _age(saved, at))
        for project, run, attempt, step, heard, saved in session.execute(query)
    ]


def _age(moment: datetime | None, at: datetime) -> float | None:
    """Seconds since then; none where a host's clock is ahead of ours."""
    return None if moment is None else max(at - moment, timedelta()).total_seconds()


def _rows(session: Session, query: Any) -> list[Any]:
    return [tuple(row) for row in session.execute(query)]
