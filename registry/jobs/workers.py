"""Which workers are there, and whether any is."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import now
from registry.models import Worker

ALIVE: Final = timedelta(seconds=90)  # a worker says so every few seconds; a long transaction may hold it up


@dataclass(frozen=True)
class WorkerRow:
    name: str
    started_at: datetime
    seen_at: datetime
    alive: bool


def list_workers(session: Session) -> list[WorkerRow]:
    """The workers of the last day, the last heard of first; `alive`: heard of within ALIVE."""
    rows = session.scalars(select(Worker).order_by(Worker.seen_at.desc(), Worker.name))
    return [WorkerRow(row.name, row.started_at, row.seen_at, row.seen_at >= now() - ALIVE) for row in rows]
