"""What the service notices by itself: an attempt whose heartbeats stop is lost, one that makes no step is stalled.

A supervisor dies with its host, and a hang does not exit. An attempt that never had a heartbeat (a backfill) and one
that has ended are never lost. A step interval is measured from the attempt's own heartbeats, else from its own saves;
before two are known, nothing is called stalled. Any number of processes may look at once: each attempt is locked and
looked at again before an incident opens, and the database takes one open incident per attempt and kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import bindparam, select, text
from sqlalchemy.orm import Session, aliased

from registry import outbox
from registry.db import now
from registry.ids import new_id, to_text
from registry.incidents.causes import UNKNOWN
from registry.incidents.closing import settle
from registry.incidents.losses import loss_of
from registry.incidents.pulse import KEPT, read_intervals
from registry.incidents.shapes import SERVICE
from registry.models import Attempt, AttemptPulse, Checkpoint, Incident, Run
from registry.models.attempt import WATCHED
from registry.types import CheckpointState
from registry.upsert import insert_new

INTERVALS_WITHOUT_STEP: Final = 3
INTERVALS_NEEDED: Final = 2
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
    """Attempts that should run and had their last heartbeat longer ago than `lost_after`."""
    query = (
        select(Attempt.run_id, Attempt.id, Attempt.heartbeat_at)
        .outerjoin(AttemptPulse, _PULSE_OF)
        .where(
            text(f"attempt.{WATCHED.replace(' AND ', ' AND attempt.')}"),
            Attempt.heartbeat_at < at - lost_after,
            AttemptPulse.heard_at.is_(None) | (AttemptPulse.heard_at < at - min(lost_after, HEARD_LATELY)),
        )
        .order_by(Attempt.heartbeat_at)
        .limit(AT_ONCE)
    )
    return [Noticed(run, identity, "lost", beat) for run, identity, beat in session.execute(query) if beat is not None]


def find_stalled(session: Session, at: datetime, lost_after: timedelta) -> list[Noticed]:
    """Attempts that are heard of and make no step, each the newest of its run."""
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
        since = _without_step_since(session, attempt, pulse, at)
        if since is not None:
            found.append(Noticed(attempt.run_id, attempt.id, "stalled", since))
    return found


def open_noticed(session: Session, noticed: Sequence[Noticed], at: datetime, lost_after: timedelta) -> list[int]:
    """The ids of the incidents that were opened: each attempt is locked and looked at once more.

    The run first, as every heartbeat does, and in the order of ids: nobody waits for another in a circle.
    """
    opened = []
    for each in sorted(noticed, key=lambda one: (one.run_id, one.attempt_id)):
        session.execute(select(Run.id).where(Run.id == each.run_id).with_for_update())
        query = select(Attempt).where(Attempt.id == each.attempt_id).with_for_update()
        attempt = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
        if attempt is not None and _is_still(session, attempt, each, at, lost_after):
            identity = _open(session, attempt, each)
            if identity is not None:
                opened.append(identity)
    return opened


_PULSE_OF: Final = (AttemptPulse.project_id == Attempt.project_id) & (AttemptPulse.attempt_id == Attempt.id)


def _is_still(session: Session, attempt: Attempt, seen: Noticed, at: datetime, lost_after: timedelta) -> bool:
    if attempt.state != "running" or attempt.heartbeat_at is None:
        return False
    if seen.kind == "lost":
        return attempt.heartbeat_at < at - lost_after
    pulse = session.get(AttemptPulse, (attempt.project_id, attempt.id), populate_existing=True)
    return _without_step_since(session, attempt, pulse, at) is not None


def _without_step_since(
    session: Session, attempt: Attempt, pulse: AttemptPulse | None, at: datetime
) -> datetime | None:
    """When the last step was made, where that is more than three intervals ago; None where it is not, or unknown."""
    intervals = read_intervals(pulse.intervals) if pulse is not None else ()
    last = pulse.step_at if pulse is not None else None
    if len(intervals) >= INTERVALS_NEEDED and last is not None and not _is_over(intervals, last, at):
        return None
    saves = _saves(session, attempt)
    if len(intervals) < INTERVALS_NEEDED:
        intervals = [(one - other).total_seconds() for one, other in pairwise(saves)]
    if saves:
        last = saves[0] if last is None else max(last, saves[0])
    if len(intervals) < INTERVALS_NEEDED or last is None or not _is_over(intervals, last, at):
        return None
    return last


def _is_over(intervals: Sequence[float], last: datetime, at: datetime) -> bool:
    longest = max(intervals)
    return longest > 0 and (at - last).total_seconds() > INTERVALS_WITHOUT_STEP * longest


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
    """None where another process was first, or the attempt has an open incident already, whose state it then takes."""
    standing = select(Incident.kind).where(
        Incident.project_id == attempt.project_id,
        Incident.attempt_id == attempt.id,
        Incident.closed_at.is_(None),
        Incident.kind.in_(("crashed", "lost", "stalled")),
    )
    kind = session.scalars(standing).first()
    if kind is not None:
        attempt.state = "failed" if kind == "crashed" else kind
        session.flush()
        return None
    loss = loss_of(session, attempt)
    row = _row(attempt, noticed) | {
        "last_step": loss.last_step,
        "steps_lost": loss.steps,
        "fruitless": not loss.saved_anything,
    }
    if not insert_new(session, Incident, [row]):
        return None
    attempt.state = noticed.kind
    session.flush()
    identity: int = row["id"]
    detail = {"run_id": to_text(attempt.run_id), "kind": noticed.kind, "cause": UNKNOWN}
    outbox.announce(session, attempt.project_id, "incident.opened", [identity], detail)
    settle(session, session.get_one(Incident, identity))
    return identity


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
