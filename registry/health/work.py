"""Work that waits: whether somebody does it, and what of it failed."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.db import now
from registry.health.shapes import Found, fault, ok, warning
from registry.jobs.workers import list_workers
from registry.models import Job, OutboxEvent

PATIENCE: Final = timedelta(minutes=10)  # that a job or an event may wait where a worker is there
LATELY: Final = timedelta(days=1)
START_ONE: Final = "Start one: `cairn-server worker`; `serve` on SQLite keeps one unless CAIRN_WORKER is 0."


def look_at_work(session: Session) -> Iterator[Found]:
    alive = [row.name for row in list_workers(session) if row.alive]
    waiting = _waiting_since(session)
    if alive:
        yield ok("workers", f"{len(alive)} at work: {', '.join(alive[:5])}{', …' if len(alive) > 5 else ''}")
    elif waiting is None:
        yield ok("workers", "None is there, and nothing waits for one.")
    else:
        yield fault("workers", f"None is there, and work waits since {waiting:%Y-%m-%d %H:%M} UTC.", START_ONE)
    if alive and waiting is not None and waiting < now() - PATIENCE:
        advice = "`GET /api/v1/jobs?state=waiting` names the jobs; is there one worker too few?"
        yield warning("work", f"Some has waited since {waiting:%Y-%m-%d %H:%M} UTC.", advice)
    yield _failed(session)


def _waiting_since(session: Session) -> datetime | None:
    """When the oldest work that is due began to wait: a job, or an event that nobody was told of."""
    job = session.execute(select(func.min(Job.not_before)).where(Job.state == "waiting")).scalar_one()
    event = session.execute(
        select(func.min(OutboxEvent.created_at)).where(OutboxEvent.delivered_at.is_(None))
    ).scalar_one()
    due = [at for at in (job, event) if at is not None and at <= now()]
    return min(due) if due else None


def _failed(session: Session) -> Found:
    query = select(Job.kind, Job.error, func.count()).where(Job.state == "failed", Job.ended_at >= now() - LATELY)
    rows = session.execute(query.group_by(Job.kind, Job.error).order_by(func.count().desc())).all()
    if not rows:
        return ok("jobs", "None failed within a day.")
    kind, error, _ = rows[0]
    said = f"{sum(row[2] for row in rows)} failed within a day, most often {kind}: {error or 'no reason kept'}"
    return warning("jobs", said, "`GET /api/v1/jobs?state=failed` lists them.")
