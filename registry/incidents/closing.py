"""Incidents close by themselves when training goes on, by what is recorded and not by the order of arrival.

Called with each commit and each heartbeat; where a run has no open incident, that is one look into a small index.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, false, func, or_, select, true
from sqlalchemy.orm import Session

from registry import outbox
from registry.db import now
from registry.ids import to_text
from registry.incidents.losses import loss_of
from registry.models import Attempt, AttemptPulse, Checkpoint, Incident
from registry.types import CheckpointState

CLOSED: Final = "incident.closed"
ENDED: Final = ("crashed", "lost")  # the kinds whose attempt makes no further step
OPEN: Final = select(Incident).where(
    Incident.project_id == bindparam("project"),
    Incident.run_id.in_(bindparam("runs", expanding=True)),
    Incident.closed_at.is_(None),
)
_OPEN: Final = OPEN.order_by(Incident.id)


def settle_open(session: Session, project_id: int, run_ids: Sequence[int]) -> None:
    """Close each open incident of these runs after which training went on."""
    for incident in session.scalars(_OPEN, {"project": project_id, "runs": list(run_ids)}).all():
        settle(session, incident)


def settle(session: Session, incident: Incident) -> None:
    """Close the incident where training went on after it; else bring its loss up to what has arrived since."""
    attempt = session.get(Attempt, incident.attempt_id) if incident.attempt_id is not None else None
    if attempt is not None and incident.kind == "lost" and _was_heard_since(session, attempt, incident):
        return
    recount(session, incident, attempt)
    went_on = min(_signs(session, incident, attempt), default=None)
    if went_on is None:
        return
    moment, number = went_on
    if attempt is not None and attempt.number == number:
        _nothing_lost(incident, attempt)
    close(session, incident, moment)


def close(session: Session, incident: Incident, recovered_at: datetime | None) -> None:
    """Closed now: training went on at `recovered_at`, or, where that is None, somebody says that it is over."""
    incident.closed_at, incident.recovered_at = now(), recovered_at
    incident.ending = "closed" if recovered_at is None else "recovered"
    session.flush()
    detail = {"run_id": to_text(incident.run_id), "cause": incident.cause, "ending": incident.ending}
    outbox.announce(session, incident.project_id, CLOSED, [incident.id], detail)


def recount(session: Session, incident: Incident, attempt: Attempt | None) -> None:
    """Late records of the attempt change what was lost, unless the reporter gave a number of its own."""
    if attempt is None or incident.steps_lost_said:
        return
    found = loss_of(session, attempt, incident.last_step)
    if incident.kind in ENDED:  # others leave the attempt running: its later steps are no loss
        incident.last_step, incident.steps_lost = found.last_step, found.steps
    incident.fruitless = incident.fruitless and not found.saved_anything
    session.flush()


def _was_heard_since(session: Session, attempt: Attempt, incident: Incident) -> bool:
    """Whether the attempt lived on, in which case the incident is closed.

    A sign of life from before anybody noticed, arriving late, only shows that it lived a little longer.
    """
    saved_at = session.scalar(
        select(func.max(Checkpoint.saved_at)).where(
            Checkpoint.project_id == attempt.project_id,
            Checkpoint.attempt_id == attempt.id,
            Checkpoint.state == CheckpointState.COMMITTED.value,
        )
    )
    sign = max((moment for moment in (attempt.heartbeat_at, saved_at) if moment is not None), default=None)
    if sign is None or sign <= incident.occurred_at:
        return False
    if sign <= incident.created_at and attempt.state != "finished":
        incident.occurred_at = sign
        session.flush()
        return False
    _nothing_lost(incident, attempt)
    close(session, incident, sign)
    return True


def _nothing_lost(incident: Incident, attempt: Attempt) -> None:
    """The attempt itself went on: it had only fallen silent, or hung for a while."""
    if incident.kind in ("lost", "stalled"):
        incident.steps_lost = incident.steps_lost if incident.steps_lost_said else 0
        attempt.state = "running" if attempt.state == incident.kind else attempt.state


def _signs(session: Session, incident: Incident, attempt: Attempt | None) -> list[tuple[datetime, int]]:
    """(when, in which attempt) training went on: a step saved, or named by a heartbeat, that the incident had not seen.

    Of the same attempt only where the interruption leaves it running.
    """
    number = attempt.number if attempt is not None else 0
    found = [_saved_at(session, incident, number), _stepped_at(session, incident, number)]
    if attempt is not None and attempt.state == "finished" and attempt.ended_at is not None:
        found.append((max(attempt.ended_at, incident.occurred_at), number))
    return [each for each in found if each is not None]


def _saved_at(session: Session, incident: Incident, number: int) -> tuple[datetime, int] | None:
    query = (
        select(Checkpoint.saved_at, Checkpoint.attempt_number)
        .where(
            Checkpoint.project_id == incident.project_id,
            Checkpoint.run_id == incident.run_id,
            Checkpoint.attempt_number >= number,
            or_(Checkpoint.attempt_number > number, _beyond(Checkpoint.step, incident)),
            Checkpoint.state == CheckpointState.COMMITTED.value,
            Checkpoint.saved_at > incident.occurred_at,
        )
        .order_by(Checkpoint.saved_at)
        .limit(1)
    )
    row = session.execute(query).one_or_none()
    return None if row is None else (row[0], row[1])


def _stepped_at(session: Session, incident: Incident, number: int) -> tuple[datetime, int] | None:
    later = (Attempt.number > number) & (AttemptPulse.step > func.coalesce(Attempt.resumed_from_step, 0))
    same_attempt = (Attempt.project_id == AttemptPulse.project_id) & (Attempt.id == AttemptPulse.attempt_id)
    query = (
        select(AttemptPulse.step_at, Attempt.number)
        .join(Attempt, same_attempt)
        .where(
            Attempt.project_id == incident.project_id,
            Attempt.run_id == incident.run_id,
            Attempt.number >= number,
            or_(later, (Attempt.number == number) & _beyond(AttemptPulse.step, incident)),
            AttemptPulse.step_at > incident.occurred_at,
        )
        .order_by(AttemptPulse.step_at)
        .limit(1)
    )
    row = session.execute(query).one_or_none()
    return None if row is None or row[0] is None else (row[0], row[1])


def _beyond(step: Any, incident: Incident) -> Any:
    """Whether a step of the same attempt shows that it went on: never of one that has ended."""
    if incident.kind in ENDED:
        return false()
    return true() if incident.last_step is None else step > incident.last_step
