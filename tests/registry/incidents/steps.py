"""Small helpers of the ledger's tests: an attempt that lives, by its heartbeats."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from registry.attempts import AttemptRow, amend_attempt
from registry.db import now
from registry.incidents.queries import Asked, get_incident, list_incidents
from registry.incidents.shapes import IncidentRow
from registry.incidents.watch import Noticed, find_silent, find_stalled, open_noticed
from registry.models import AttemptPulse
from registry.runs import RunRow

LOST_AFTER = timedelta(seconds=120)
AT_ONCE = timedelta(0)  # no floor, so that steps of seconds tell a stall


def beat(session: Session, run: RunRow, attempt: AttemptRow, moment: datetime, step: int | None = None) -> None:
    """A heartbeat as it arrives in time: the service hears it at that moment."""
    changes = {"heartbeat_at": moment} | ({} if step is None else {"step": step})
    amend_attempt(session, run.id, attempt.number, changes)
    pulse = session.get_one(AttemptPulse, (run.project_id, attempt.id))
    pulse.heard_at = moment
    session.flush()


def beats(session: Session, run: RunRow, attempt: AttemptRow, start: datetime, steps: Sequence[int]) -> datetime:
    """A heartbeat with each of these steps, 10 s apart; the time of the last."""
    for place, step in enumerate(steps):
        beat(session, run, attempt, start + timedelta(seconds=10 * place), step)
    return start + timedelta(seconds=10 * (len(steps) - 1))


def look(session: Session, at: datetime | None = None, stalled_after: timedelta = AT_ONCE) -> list[IncidentRow]:
    """What the service opens when it looks at this moment."""
    moment = at or now()
    noticed: list[Noticed] = [
        *find_silent(session, moment, LOST_AFTER),
        *find_stalled(session, moment, LOST_AFTER, stalled_after),
    ]
    opened = open_noticed(session, noticed, moment, LOST_AFTER, stalled_after)
    return [get_incident(session, each) for each in opened]


def incidents_of(session: Session, run: RunRow) -> list[IncidentRow]:
    return list_incidents(session, Asked(run_id=run.id))
