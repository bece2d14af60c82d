"""Who works on which job: claims with a lease, so that a killed worker's job goes on elsewhere, never twice at once.

Every write of a job proves first, in its own transaction, that the claim still holds. So a worker that was only slow,
and whose job another has taken over, cannot write any more.
"""

import random
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import and_, exists, func, or_, select, text, update
from sqlalchemy.orm import Session, aliased

from registry import strict_json
from registry.db import Database, now
from registry.ids import to_text
from registry.jobs.errors import LeaseLost, WorkerStopping
from registry.models import Job

LEASE: Final = timedelta(seconds=60)
FIRST_PAUSE: Final = timedelta(seconds=5)
LONGEST_PAUSE: Final = timedelta(minutes=15)
MAX_ERROR: Final = 2_000  # characters


@dataclass(frozen=True)
class Claim:
    """A job that this worker holds; `number` tells this hold from every other one."""

    database: Database
    job_id: int
    number: int
    project_id: int
    kind: str
    key: str
    resource: str | None
    arguments: Mapping[str, Any]
    position: Any
    failures: int
    asked_by: str
    progress_done: int = 0
    stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A transaction that holds only if the claim does. Raises LeaseLost."""
        with self.database.write() as session:
            self.prove(session)
            yield session

    def prove(self, session: Session, **values: Any) -> None:
        """Renew the lease, and set what is given. Raises LeaseLost, WorkerStopping."""
        if self.stopping.is_set():
            raise WorkerStopping(f"The worker of job {to_text(self.job_id)} is ending; another goes on with it.")
        own = (Job.id == self.job_id, Job.claims == self.number, Job.state == "running")
        done = session.execute(update(Job).where(*own).values(lease_until=now() + LEASE, **values))
        if done.rowcount != 1:  # type: ignore[attr-defined]
            raise LeaseLost(f"Job {to_text(self.job_id)} was cancelled, or another worker holds it by now.")

    def save(
        self,
        session: Session,
        *,
        position: Any = None,
        done: int | None = None,
        total: int | None = None,
        words: str = "",
    ) -> None:
        """Note how far the work is, in the transaction of the work itself. What is given replaces what was said."""
        values: dict[str, Any] = {"failures": 0, "error_code": None, "error": None}
        if position is not None:
            values["position"] = strict_json.canonical(position)
        if done is not None:
            values["progress_done"] = done
        if total is not None:
            values["progress_total"] = total
        if words:
            values["progress_text"] = words[:200]
        self.prove(session, **values)


def claim_next(database: Database, worker: str, stopping: threading.Event | None = None) -> Claim | None:
    """The job that is due longest, or one whose worker is gone; None where there is none."""
    with database.read() as session:
        if session.scalars(_next_select()).first() is None:  # nothing to do costs no write
            return None
    with database.write() as session:
        if session.get_bind().dialect.name == "postgresql":  # one claim at a time, so that no two share a key
            session.execute(text("SELECT pg_advisory_xact_lock(4227858432)"))
        found = session.scalars(_next_select()).first()
        if found is None:
            return None
        found.state, found.worker, found.lease_until = "running", worker, now() + LEASE
        found.claims += 1
        found.started_at = found.started_at or now()
        session.flush()
        return Claim(
            database,
            found.id,
            found.claims,
            found.project_id,
            found.kind,
            found.key,
            found.resource,
            strict_json.loads(found.arguments.encode()),
            None if found.position is None else strict_json.loads(found.position.encode()),
            found.failures,
            found.asked_by,
            found.progress_done,
            stopping or threading.Event(),
        )


def _next_select() -> Any:
    at = now()
    other = aliased(Job)
    busy = exists().where(
        other.project_id == Job.project_id,
        other.kind == Job.kind,
        other.key == Job.key,
        other.state == "running",
        other.lease_until >= at,
        other.id != Job.id,
    )
    due = and_(Job.state == "waiting", Job.not_before <= at)
    orphaned = and_(Job.state == "running", Job.lease_until < at)
    return select(Job).where(or_(due, orphaned), ~busy).order_by(Job.not_before, Job.id).limit(1)


def finish(claim: Claim, report: Mapping[str, Any] | None = None) -> None:
    """The work is done. Raises LeaseLost."""
    with claim.write() as session:
        _end(session, claim, "done", report=None if report is None else strict_json.canonical(report))
        if claim.resource is not None:  # what it needs answers again, so whoever waited for it may go on
            waiting = (Job.resource == claim.resource, Job.state == "waiting", Job.failures > 0)
            session.execute(update(Job).where(*waiting, Job.not_before > now()).values(not_before=now()))


def release(claim: Claim) -> None:
    """Give a job back, to go on where it is; where a newer one of its kind and key waits, that one does its work."""
    with claim.database.write() as session:
        own = (Job.id == claim.job_id, Job.claims == claim.number, Job.state == "running")
        session.execute(update(Job).where(*own).values(lease_until=now() - LEASE))


def fail(claim: Claim, code: str, message: str) -> None:
    """The work cannot be done, and trying again would not help. Raises LeaseLost."""
    with claim.write() as session:
        _end(session, claim, "failed", error_code=code, error=message[:MAX_ERROR])


def try_again_later(claim: Claim, code: str, message: str) -> timedelta:
    """Wait, twice as long after each failure up to LONGEST_PAUSE, with the other jobs that need the same from outside.

    Where a newer job of the same kind and key waits already, that one carries on. Gives the pause. Raises LeaseLost.
    """
    failures = claim.failures + 1
    pause = pause_after(failures)
    error = {"error_code": code, "error": message[:MAX_ERROR], "failures": failures}
    with claim.write() as session:
        newer = session.execute(
            update(Job)
            .where(Job.project_id == claim.project_id, Job.kind == claim.kind, Job.key == claim.key)
            .where(Job.state == "waiting")
            .values(not_before=now() + pause, **error)
        )
        if newer.rowcount:  # type: ignore[attr-defined]
            _end(session, claim, "cancelled", error_code=code, error=f"{message[:MAX_ERROR]} A newer job carries on.")
        else:
            held = {"worker": None, "lease_until": None, "state": "waiting", "not_before": now() + pause}
            session.execute(update(Job).where(Job.id == claim.job_id).values(**held, **error))
        if claim.resource is not None:
            _hold_back(session, claim.resource, pause)
    return pause


def pause_after(failures: int) -> timedelta:
    """How long to wait after so many failures in a row, with up to a fifth more, so that they do not march in step."""
    longest: timedelta = min(FIRST_PAUSE * 2 ** min(failures - 1, 20), LONGEST_PAUSE)
    return longest * (1 + random.random() / 5)  # noqa: S311


def _hold_back(session: Session, resource: str, pause: timedelta) -> None:
    waiting = (Job.resource == resource, Job.state == "waiting", Job.not_before < now() + pause)
    raised = {"not_before": now() + pause, "failures": func.max(Job.failures, 1)}
    if session.get_bind().dialect.name == "postgresql":
        raised["failures"] = func.greatest(Job.failures, 1)
    session.execute(update(Job).where(*waiting).values(**raised))


def _end(session: Session, claim: Claim, state: str, **values: Any) -> None:
    ended = {"state": state, "worker": None, "lease_until": None, "ended_at": now()}
    session.execute(update(Job).where(Job.id == claim.job_id).values(**ended, **values))
