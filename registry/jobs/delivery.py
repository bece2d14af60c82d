"""From the outbox to whoever must know: each event once, in the order it was written, outside the request that made it.

A receiver is `function(session, events)`, registered by its path: it turns events into jobs, and does no work itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, cast

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import Database, now
from registry.models import OutboxEvent

RECEIVERS: Final = ("registry.trackers.schedule:ask_for_pushes",)
BATCH: Final = 1_000


@dataclass(frozen=True)
class Event:
    """What happened to `subject_id`, such as checkpoint.committed."""

    id: int
    project_id: int
    topic: str
    subject_id: int
    detail: dict[str, Any]


def deliver_events(database: Database) -> int:
    """Hand a batch of events to every receiver, in one transaction; gives how many there were."""
    with database.read() as session:
        if session.scalars(select(OutboxEvent.id).where(OutboxEvent.delivered_at.is_(None)).limit(1)).first() is None:
            return 0
    with database.write() as session:
        events = _take(session)
        if events:
            for receiver in RECEIVERS:
                _function(receiver)(session, events)
            ids = [event.id for event in events]
            session.execute(update(OutboxEvent).where(OutboxEvent.id.in_(ids)).values(delivered_at=now()))
        return len(events)


def _take(session: Session) -> Sequence[Event]:
    query = select(OutboxEvent).where(OutboxEvent.delivered_at.is_(None)).order_by(OutboxEvent.id).limit(BATCH)
    rows = session.scalars(query.with_for_update(skip_locked=True))
    return [
        Event(row.id, row.project_id, row.topic, row.subject_id, strict_json.loads(row.payload.encode()))
        for row in rows
    ]


def _function(path: str) -> Callable[[Session, Sequence[Event]], None]:
    module, _, name = path.partition(":")
    return cast(Callable[[Session, Sequence[Event]], None], getattr(import_module(module), name))
