"""The fault ledger: open an incident, complete it, close it by hand.

Whoever reports the same interruption twice (the service that noticed silence, then the supervisor whose record
arrives late; several hosts of one attempt) completes one incident instead of opening a second.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from registry import audit, outbox, strict_json
from registry.db import now
from registry.ids import new_id, to_text
from registry.incidents.causes import UNKNOWN, WANTED, is_better
from registry.incidents.closing import close, settle
from registry.incidents.losses import loss_of
from registry.incidents.queries import get_incident
from registry.incidents.shapes import (
    MAX_EXCERPT_BYTES,
    SERVICE,
    BadIncident,
    IncidentNotFound,
    IncidentRow,
    IncidentStillOpen,
    NewIncident,
)
from registry.incidents.suspicion import weigh
from registry.models import Attempt, Checkpoint, Incident, Replica, Run
from registry.runs import RunNotFound

OPENED: Final = "incident.opened"
AHEAD: Final = timedelta(days=1)  # clocks of hosts may be wrong by minutes, not by more
APART: Final = timedelta(minutes=10)  # that a report may say earlier than the last sign of life, by the clocks of hosts
_NUMBERS: Final = re.compile(r"0x[0-9a-f]+|\d+", re.IGNORECASE)


def open_incident(session: Session, run_id: int, new: NewIncident, *, actor: str) -> tuple[IncidentRow, bool]:
    """The incident, and whether it was made just now.

    The same key again is the same incident; so is another report of an interruption that is known already, which
    then completes it: `not_applied` names what of it the incident says otherwise. Raises RunNotFound, BadIncident.
    """
    run = session.scalars(select(Run).where(Run.id == run_id).with_for_update()).one_or_none()
    if run is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}. POST /api/v1/runs makes one.")
    occurred_at = _checked_time(new)
    attempt = _attempt(session, run, new)
    known = _known(session, run, attempt, new, occurred_at)
    if known is not None:
        if known.key is None or known.key != new.key:
            _complete(session, known, attempt, new, occurred_at, actor)
        return replace(get_incident(session, known.id), not_applied=_not_applied(known, new)), False
    incident = _insert(session, run, attempt, new, occurred_at, actor)
    if attempt is not None and new.kind == "crashed":
        _end(attempt, incident)
    weigh(session, incident)
    detail = {"run_id": to_text(run.id), "kind": incident.kind, "cause": incident.cause}
    outbox.announce(session, run.project_id, OPENED, [incident.id], detail)
    if new.recovered_at is not None:
        close(session, incident, max(new.recovered_at, occurred_at))
    elif incident.kind == "crashed" and incident.cause == WANTED:
        close(session, incident, None)  # nobody waits for a training that a person has stopped
    else:
        settle(session, incident)
    return get_incident(session, incident.id), True


def note_failure(session: Session, attempt: Attempt) -> None:
    """An attempt that says itself that it failed has an incident, which whoever knows more completes."""
    struck = min(attempt.ended_at or now(), now())
    known = NewIncident("crashed", attempt.number, occurred_at=struck, exit_code=attempt.exit_code)
    open_incident(session, attempt.run_id, known, actor=SERVICE)


def amend_incident(session: Session, incident_id: int, changes: Mapping[str, Any], *, actor: str) -> IncidentRow:
    """Set what the merge patch names: cause, note, node, hardware, closed_at; None takes a value away.

    `closed_at` None opens it again. Raises IncidentNotFound, IncidentStillOpen.
    """
    query = select(Incident).where(Incident.id == incident_id).with_for_update()
    incident = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if incident is None:
        raise IncidentNotFound(f"There is no incident {to_text(incident_id)}. GET /api/v1/incidents lists them.")
    for name in ("note", "node", "hardware"):
        if name in changes:
            setattr(incident, name, changes[name])
    if "cause" in changes:
        incident.cause = changes["cause"] or UNKNOWN
        incident.cause_said_by = actor if changes["cause"] else None
        session.flush()
        weigh(session, incident)
    if "closed_at" in changes:
        _close_by_hand(session, incident, changes["closed_at"])
    session.flush()
    audit.record(
        session,
        actor=actor,
        action="incident.amend",
        project_id=incident.project_id,
        subject_id=incident.id,
        detail={name: value.isoformat() if isinstance(value, datetime) else value for name, value in changes.items()},
    )
    return get_incident(session, incident.id)


def signature_of(new: NewIncident) -> str | None:
    """What failures that are alike have in common: the cause and the line that says it, numbers left out."""
    cause = new.cause or UNKNOWN
    lines = [line for line in (new.evidence or (new.log_excerpt or "").splitlines()[-1:]) if line.strip()]
    if cause == UNKNOWN and not lines and new.exit_code is None and new.signal is None:
        return None
    line = _NUMBERS.sub("#", " ".join(lines[-1].split())) if lines else ""
    return f"{cause}|{new.signal or new.exit_code or ''}|{line}"[:300]


def _checked_time(new: NewIncident) -> datetime:
    at = new.occurred_at or now()
    if at > now() + AHEAD:
        raise BadIncident.at("/occurred_at", "lies in the future")
    if new.recovered_at is not None and new.recovered_at < at:
        raise BadIncident.at("/recovered_at", "lies before the incident itself")
    if new.log_excerpt is not None and len(new.log_excerpt.encode()) > MAX_EXCERPT_BYTES:
        raise BadIncident.at("/log_excerpt", f"is longer than {MAX_EXCERPT_BYTES} bytes; send its end")
    return at


def _attempt(session: Session, run: Run, new: NewIncident) -> Attempt | None:
    query = select(Attempt).where(Attempt.project_id == run.project_id, Attempt.run_id == run.id)
    if new.attempt is not None:
        found = session.scalars(query.where(Attempt.number == new.attempt)).one_or_none()
        missing = ("/attempt", f"run {to_text(run.id)} has no attempt {new.attempt}")
    elif new.attempt_key is not None:
        found = session.scalars(query.where(Attempt.key == new.attempt_key)).one_or_none()
        missing = ("/attempt_key", f"run {to_text(run.id)} has no attempt of this key; open it first")
    elif new.newest_attempt:
        return session.scalars(query.order_by(Attempt.number.desc()).limit(1)).first()
    else:
        return None
    if found is None:
        raise BadIncident.at(*missing)
    return found


def _known(
    session: Session, run: Run, attempt: Attempt | None, new: NewIncident, occurred_at: datetime
) -> Incident | None:
    """The incident that this report is about, where it is recorded already.

    An attempt crashes once, and what the service noticed as lost or stalled is that crash, if it came before. A report
    that says a time from which the attempt went on, before it fell silent, is of another interruption.
    """
    own = (Incident.project_id == run.project_id, Incident.run_id == run.id)
    if new.key is not None:
        found = session.scalars(select(Incident).where(*own, Incident.key == new.key)).one_or_none()
        if found is not None:
            return found
    if attempt is None:
        return None
    noticed = Incident.kind.in_(("lost", "stalled")) & or_(
        Incident.closed_at.is_(None), (Incident.occurred_at <= occurred_at) & (Incident.recovered_at >= occurred_at)
    )
    if new.kind == "reported" and new.occurred_at is not None:
        noticed &= Incident.occurred_at <= occurred_at + APART
    same: list[ColumnElement[bool]] = [noticed]
    if new.kind in ("crashed", "lost", "stalled"):
        same.append(Incident.kind == "crashed")
    elif new.kind != "reported":
        same.append((Incident.kind == new.kind) & Incident.closed_at.is_(None))
    query = select(Incident).where(*own, Incident.attempt_id == attempt.id, or_(*same))
    return session.scalars(query.order_by(Incident.closed_at.is_(None).desc(), Incident.id.desc()).limit(1)).first()


def _complete(
    session: Session, known: Incident, attempt: Attempt | None, new: NewIncident, occurred_at: datetime, actor: str
) -> None:
    """Fill in what nobody had said, and a cause that is nearer to the root than the recorded one."""
    _check_loaded(session, known.project_id, new)
    for name in ("key", "exit_code", "signal", "node", "hardware", "log_excerpt", "note", "replica_id"):
        if getattr(known, name) is None and getattr(new, name) is not None:
            setattr(known, name, getattr(new, name))
    known.checkpoint_id = known.checkpoint_id or new.checkpoint_id
    known.last_step = max((step for step in (known.last_step, new.step) if step is not None), default=None)
    if new.steps_lost is not None and not known.steps_lost_said:
        known.steps_lost, known.steps_lost_said = new.steps_lost, True
    known.occurred_at = min(known.occurred_at, occurred_at) if known.kind == "stalled" else known.occurred_at
    if new.cause is not None and known.cause_said_by is None and is_better(new.cause, known.cause):
        known.cause, known.signature = new.cause, new.signature or signature_of(new)
        known.cause_said_by = None if new.evidence else actor
        known.evidence = strict_json.canonical(list(new.evidence)) if new.evidence else None
    known.signature = known.signature or new.signature or signature_of(new)
    if new.kind == "crashed" and known.kind == "lost" and not _has_crashed(session, known):
        known.kind, known.occurred_at = "crashed", occurred_at
    session.flush()
    if attempt is not None and new.kind == "crashed":
        _end(attempt, known)
    weigh(session, known)
    if known.closed_at is None and new.recovered_at is not None:
        close(session, known, max(new.recovered_at, known.occurred_at))
    elif known.closed_at is None:
        settle(session, known)


def _not_applied(known: Incident, new: NewIncident) -> tuple[str, ...]:
    """What a report said and the incident says otherwise. A cause that nobody knows is no word on it."""
    said = {name: getattr(new, name) for name in ("cause", *_PLAIN, "checkpoint_id", "steps_lost", "recovered_at")}
    said["cause"] = None if new.cause == UNKNOWN else new.cause
    del said["key"]  # of the report itself
    return tuple(name for name, value in said.items() if value is not None and getattr(known, name) != value)


def _has_crashed(session: Session, known: Incident) -> bool:
    query = select(Incident.id).where(
        Incident.project_id == known.project_id, Incident.attempt_id == known.attempt_id, Incident.kind == "crashed"
    )
    return session.scalars(query).first() is not None


def _insert(
    session: Session, run: Run, attempt: Attempt | None, new: NewIncident, occurred_at: datetime, actor: str
) -> Incident:
    _check_loaded(session, run.project_id, new)
    loss = loss_of(session, attempt, new.step) if attempt is not None else None
    loaded = new.checkpoint_id or (attempt.resumed_from_checkpoint_id if attempt is not None else None)
    incident = Incident(
        id=new_id(),
        project_id=run.project_id,
        run_id=run.id,
        attempt_id=attempt.id if attempt is not None else None,
        kind=new.kind,
        cause=new.cause or UNKNOWN,
        cause_said_by=actor if new.cause not in (None, UNKNOWN) and not new.evidence else None,
        evidence=strict_json.canonical(list(new.evidence)) if new.evidence else None,
        occurred_at=occurred_at,
        last_step=loss.last_step if loss is not None else new.step,
        steps_lost=new.steps_lost if new.steps_lost is not None or loss is None else loss.steps,
        steps_lost_said=new.steps_lost is not None,
        checkpoint_id=loaded,
        signature=new.signature or (signature_of(new) if actor != SERVICE else None),
        fruitless=loss is not None and not loss.saved_anything,
        opened_by=actor,
        created_at=now(),
        **{name: getattr(new, name) for name in _PLAIN},
    )
    session.add(incident)
    session.flush()
    return incident


_PLAIN: Final = ("key", "exit_code", "signal", "node", "hardware", "log_excerpt", "replica_id", "note")


def _check_loaded(session: Session, project_id: int, new: NewIncident) -> None:
    """Raises BadIncident where the checkpoint or the copy is not there."""
    if new.checkpoint_id is not None:
        query = select(Checkpoint.id).where(Checkpoint.project_id == project_id, Checkpoint.id == new.checkpoint_id)
        if session.scalars(query).first() is None:
            raise BadIncident.at("/checkpoint_id", f"this project has no checkpoint {to_text(new.checkpoint_id)}")
    if new.replica_id is not None:
        copy = select(Replica.checkpoint_id).where(Replica.project_id == project_id, Replica.id == new.replica_id)
        of = session.scalars(copy).first()
        if of is None or (new.checkpoint_id is not None and of != new.checkpoint_id):
            raise BadIncident.at("/replica_id", "is no copy of the checkpoint that was loaded")


def _end(attempt: Attempt, incident: Incident) -> None:
    """A crashed attempt runs no more: its silence is no second incident."""
    if attempt.state in ("running", "stalled", "lost"):
        attempt.state = "failed"
        attempt.ended_at = attempt.ended_at or incident.occurred_at
        attempt.exit_code = incident.exit_code if attempt.exit_code is None else attempt.exit_code


def _close_by_hand(session: Session, incident: Incident, closed_at: datetime | None) -> None:
    if closed_at is not None and incident.closed_at is None:
        close(session, incident, None)
        incident.closed_at = closed_at
    elif closed_at is None and incident.closed_at is not None:
        try:
            with session.begin_nested():
                incident.closed_at = incident.ending = incident.recovered_at = None
                session.flush()
        except IntegrityError as error:
            if "uq_incident_open" not in str(error.orig) and "incident.attempt_id" not in str(error.orig):
                raise
            raise IncidentStillOpen(
                f"Incident {to_text(incident.id)} stays closed: its attempt has another open one of kind "
                f"{incident.kind!r}. Close that one first."
            ) from None
