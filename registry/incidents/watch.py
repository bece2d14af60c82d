"""What the service notices by itself: an attempt whose heartbeats stop is lost, one that makes no step is stalled.

A supervisor dies with its host, and a hang does not exit. An attempt that never had a heartbeat (a backfill) and one
that has ended are never lost. One that is called stalled and falls silent is lost then.

A stall is three typical step intervals without a step, longer by half than the longest pause from which the attempt
came back (an evaluation, a save), and never shorter than a floor. Intervals are the attempt's own, of its heartbeats or
else its saves; before three are known, nothing is called stalled. No step is lost by it, for the process lives.

Any number of processes may look at once: each attempt is locked and
looked at again before an incident opens, and the database takes one open incident per attempt and kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any, Final

from sqlalchemy import bindparam, select, text
from sqlalchemy.orm import Session, aliased

from registry import outbox
from registry.db import now
from registry.ids import new_id, to_text
from registry.incidents.causes import UNKNOWN
from registry.incidents.closing import recount, settle
from registry.incidents.losses import loss_of
from registry.incidents.pulse import read_intervals
from registry.incidents.shapes import SERVICE
from registry.models import Attempt, AttemptPulse, Checkpoint, Incident, Run
from registry.models.attempt import WATCHED
from registry.types import CheckpointState
from registry.upsert import insert_new

INTERVALS_WITHOUT_STEP: Final = 3
INTERVALS_NEEDED: Final = 3
LONGER_THAN_BEFORE: Final = 1.5  # times the longest pause that was no stall
KEPT: Final = 32  # saves from which an interval is told
STALLED_AFTER: Final = timedelta(minutes=5)
HEARD_LATELY: Final = timedelta(seconds=60)  # by the service's clock: a host's own may be minutes behind
AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Noticed:
    """An attempt that seems lost or stalled, since its last sign of life or its last step."""

    run_id: int
    attempt_id: int
    kind: str
    since: datetime


def find_silent(session: Session, at: datetime, lost_after: timedelta) -> list[Noticed]:
    """Attempts that should run, or stood still, and had their last heartbeat longer ago than `lost_after`."""
    silent = (
        select(Attempt.run_id, Attempt.id, Attempt.heartbeat_at)
        .outerjoin(AttemptPulse, _PULSE_OF)
        .where(
            Attempt.heartbeat_at < at - lost_after,
            AttemptPulse.heard_at.is_(None) | (AttemptPulse.heard_at < at - min(lost_after, HEARD_LATELY)),
        )
        .order_by(Attempt.heartbeat_at)
        .limit(AT_ONCE)
    )
    running = silent.where(text(f"attempt.{WATCHED.replace(' AND ', ' AND attempt.')}"))
    stalled = silent.join(Incident, _STALL_OF).where(Attempt.state == "stalled")
    rows = [row for query in (running, stalled) for row in session.execute(query)]
    return [Noticed(run, identity, "lost", beat) for run, identity, beat in rows if beat is not None]


def find_stalled(
    session: Session, at: datetime, lost_after: timedelta, stalled_after: timedelta = STALLED_AFTER
) -> list[Noticed]:
    """Attempts that are heard of and make no step, each the newest of its run; none that made one within
    `stalled_after`."""
    newer = aliased(Attempt)
    query = (
        select(Attempt, AttemptPulse)
        .outerjoin(AttemptPulse, _PULSE_OF)
        .where(
            text(f"attempt.{WATCHED.replace(' AND ', ' AND attempt.')}"),
            Attempt.heartbeat_at >= at - lost_after,
            ~select(newer.id)
            .where(
                newer.project_id == Attempt.project_id, newer.run_id == Attempt.run_id, newer.number > Attempt.number
            )
            .exists(),
        )
    )
    found = []
    for attempt, pulse in session.execute(query):
        since = _without_step_since(session, attempt, pulse, at, stalled_after)
        if since is not None:
            found.append(Noticed(attempt.run_id, attempt.id, "stalled", since))
    return found


def open_noticed(
    session: Session,
    noticed: Sequence[Noticed],
    at: datetime,
    lost_after: timedelta,
    stalled_after: timedelta = STALLED_AFTER,
) -> list[int]:
    """The ids of the incidents that were opened: each attempt is locked and looked at once more.

    The run first, as every heartbeat does, and in the order of ids: nobody waits for another in a circle.
    """
    opened = []
    for each in sorted(noticed, key=lambda one: (one.run_id, one.attempt_id)):
        session.execute(select(Run.id).where(Run.id == each.run_id).with_for_update())
        query = select(Attempt).where(Attempt.id == each.attempt_id).with_for_update()
        attempt = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
        if attempt is not None and _is_still(session, attempt, each, at, lost_after, stalled_after):
            identity = _open(session, attempt, each)
            if identity is not None:
                opened.append(identity)
    return opened


_STALL_OF: Final = (
    (Incident.project_id == Attempt.project_id)
    & (Incident.attempt_id == Attempt.id)
    & (Incident.kind == "stalled")
    & Incident.closed_at.is_(None)
)
_PULSE_OF: Final = (AttemptPulse.project_id == Attempt.project_id) & (AttemptPulse.attempt_id == Attempt.id)


def _is_still(
    session: Session, attempt: Attempt, seen: Noticed, at: datetime, lost_after: timedelta, stalled_after: timedelta
) -> bool:
    if attempt.heartbeat_at is None:
        return False
    if seen.kind == "lost":
        return attempt.state in ("running", "stalled") and attempt.heartbeat_at < at - lost_after
    pulse = session.get(AttemptPulse, (attempt.project_id, attempt.id), populate_existing=True)
    still = _without_step_since(session, attempt, pulse, at, stalled_after)
    return attempt.state == "running" and still is not None


def _without_step_since(
    session: Session, attempt: Attempt, pulse: AttemptPulse | None, at: datetime, stalled_after: timedelta
) -> datetime | None:
    """When the last step was made, where that is a stall; None where it is none, or nobody can tell."""
    intervals = read_intervals(pulse.intervals) if pulse is not None else ()
    last = pulse.step_at if pulse is not None else None
    if last is not None and at - last <= stalled_after:
        return None
    if len(intervals) >= INTERVALS_NEEDED and last is not None and not _is_over(intervals, last, at):
        return None
    saves = _saves(session, attempt)
    if len(intervals) < INTERVALS_NEEDED:
        intervals = [(one - other).total_seconds() for one, other in pairwise(saves)]
    if saves:
        last = saves[0] if last is None else max(last, saves[0])
    if len(intervals) < INTERVALS_NEEDED or last is None or at - last <= stalled_after:
        return None
    return last if _is_over(intervals, last, at) else None


def _is_over(intervals: Sequence[float], last: datetime, at: datetime) -> bool:
    usual = max(INTERVALS_WITHOUT_STEP * median(intervals), LONGER_THAN_BEFORE * max(intervals))
    return usual > 0 and (at - last).total_seconds() > usual


def _saves(session: Session, attempt: Attempt) -> list[datetime]:
    """When the attempt saved its newest steps, the newest first."""
    of_attempt = {"project": attempt.project_id, "attempt": attempt.id}
    return sorted(session.scalars(_SAVES, of_attempt), reverse=True)


_SAVES: Final = (
    select(Checkpoint.saved_at)
    .where(
        Checkpoint.project_id == bindparam("project"),
        Checkpoint.attempt_id == bindparam("attempt"),
        Checkpoint.state == CheckpointState.COMMITTED.value,
    )
    .order_by(Checkpoint.step.desc())
    .limit(KEPT + 1)
)


def _open(session: Session, attempt: Attempt, noticed: Noticed) -> int | None:
    """None where another process was first, or the attempt has an open incident already, whose state it then takes:
    but a stall becomes a loss when the attempt falls silent, and that is told."""
    standing = select(Incident).where(
        Incident.project_id == attempt.project_id,
        Incident.attempt_id == attempt.id,
        Incident.closed_at.is_(None),
        Incident.kind.in_(("crashed", "lost", "stalled")),
    )
    known = session.scalars(standing.order_by(Incident.kind).with_for_update()).first()
    if known is not None:
        if (known.kind, noticed.kind) == ("stalled", "lost"):
            return _is_lost_now(session, attempt, known, noticed.since)
        attempt.state = "failed" if known.kind == "crashed" else known.kind
        session.flush()
        return None
    loss = loss_of(session, attempt)
    row = _row(attempt, noticed) | {
        "last_step": loss.last_step,
        "steps_lost": loss.steps if noticed.kind == "lost" else None,  # a process that lives has lost none
        "fruitless": not loss.saved_anything,
    }
    if not insert_new(session, Incident, [row]):
        return None
    identity: int = row["id"]
    return _tell(session, attempt, session.get_one(Incident, identity))


def _is_lost_now(session: Session, attempt: Attempt, stall: Incident, since: datetime) -> int:
    """The stall is the one incident of this interruption; that it is a loss is noticed now."""
    stall.kind, stall.occurred_at, stall.created_at = "lost", since, now()
    recount(session, stall, attempt)
    return _tell(session, attempt, stall)


def _tell(session: Session, attempt: Attempt, incident: Incident) -> int:
    attempt.state = incident.kind
    session.flush()
    detail = {"run_id": to_text(attempt.run_id), "kind": incident.kind, "cause": incident.cause}
    outbox.announce(session, attempt.project_id, "incident.opened", [incident.id], detail)
    settle(session, incident)
    return incident.id


def _row(attempt: Attempt, noticed: Noticed) -> dict[str, Any]:
    nothing = ("key", "cause_said_by", "evidence", "exit_code", "signal", "node", "hardware", "log_excerpt")
    later = ("replica_id", "signature", "note", "closed_at", "ending", "recovered_at")
    return {
        **dict.fromkeys((*nothing, *later)),
        "id": new_id(),
        "project_id": attempt.project_id,
        "run_id": attempt.run_id,
        "attempt_id": attempt.id,
        "kind": noticed.kind,
        "cause": UNKNOWN,
        "occurred_at": noticed.since,
        "steps_lost_said": False,
        "checkpoint_id": attempt.resumed_from_checkpoint_id,
        "opened_by": SERVICE,
        "created_at": now(),
    }
