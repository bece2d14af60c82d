"""A worker: delivers what the outbox holds, and does one job after another until it is told to stop.

Work happens outside any transaction; each step writes in one of its own (registry.jobs.claims). While a job runs, a
second thread renews its lease.
"""

import logging
import os
import secrets
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any, Final, cast

from sqlalchemy import delete
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from registry.config import Settings
from registry.db import Database, now, to_micros
from registry.errors import RegistryError, Unavailable
from registry.ids import EPOCH_MS, RANDOM_BITS, to_text
from registry.jobs import claims
from registry.jobs.claims import Claim
from registry.jobs.delivery import deliver_events
from registry.jobs.errors import JobBroke, LeaseLost, WorkerStopping
from registry.models import Job, OutboxEvent, Worker
from registry.upsert import insert_into

log = logging.getLogger(__name__)

# What does a job of a kind: `function(claim, settings) -> report`. Imported when the first one is met.
KINDS: Final[Mapping[str, str]] = {
    "tracker.import": "registry.integrations.importing:import_place",
    "tracker.refresh": "registry.integrations.refreshing:refresh_link",
    "tracker.push": "registry.integrations.pushing:push_link",
}
# What is due by the clock: `function(session)`, called now and then by every worker.
CLOCKS: Final = ("registry.trackers.schedule:ask_for_due_refreshes",)
IDLE_SECONDS: Final = 1.0
CLOCK_SECONDS: Final = 5.0
RENEW_SECONDS: Final = 15.0
BROKEN_TRIES: Final = 5
KEEP_DONE: Final = timedelta(days=7)
KEEP_FAILED: Final = timedelta(days=30)
WORKER_GONE: Final = timedelta(days=1)


def worker_name() -> str:
    """Host, process and a random part: unique, also where two containers give the same process id."""
    return f"{socket.gethostname()[:100]}:{os.getpid()}:{secrets.token_hex(3)}"


class JobWorker:
    """One worker of a process; `run` until `stop`."""

    def __init__(self, database: Database, settings: Settings, name: str | None = None) -> None:
        self.database, self.settings = database, settings
        self.name = name or worker_name()
        self._stopping = threading.Event()
        self._clocked = float("-inf")
        self._started = now()

    def stop(self) -> None:
        """Begin nothing more; the job at hand is given up at its next write, and goes on elsewhere."""
        self._stopping.set()

    def run(self) -> None:
        """Work until stopped. A database that does not answer is waited for."""
        log.info("worker %s is ready", self.name)
        while not self._stopping.is_set():
            try:
                if not self.work_once():
                    self._stopping.wait(IDLE_SECONDS)
            except OperationalError as error:
                log.warning("the database does not answer: %s", str(error.orig).strip().splitlines()[0])
                self._stopping.wait(5 * IDLE_SECONDS)

    def work_once(self) -> bool:
        """Deliver events, and do one job; False where there was nothing to do."""
        delivered = deliver_events(self.database)
        self._clock()
        claim = claims.claim_next(self.database, self.name, self._stopping)
        if claim is not None:
            self._do(claim)
        return claim is not None or delivered > 0

    def _clock(self) -> None:
        if time.monotonic() - self._clocked < CLOCK_SECONDS:
            return
        self._clocked = time.monotonic()
        with self.database.write() as session:
            _say_alive(session, self.name, self._started)
            _forget_old(session)
            for clock in CLOCKS:
                _function(clock)(session)

    def _do(self, claim: Claim) -> None:
        try:
            with _renewing(claim):
                report = _function(KINDS[claim.kind])(claim, self.settings)
            claims.finish(claim, report)
        except LeaseLost as lost:
            log.warning("job %s given up: %s", to_text(claim.job_id), lost.message)
        except WorkerStopping:
            claims.release(claim)
        except Unavailable as error:
            pause = claims.try_again_later(claim, error.code, error.message)
            log.info("job %s waits %.0f s: %s", to_text(claim.job_id), pause.total_seconds(), error.message)
        except RegistryError as error:
            claims.fail(claim, error.code, error.message)
            log.warning("job %s failed: %s", to_text(claim.job_id), error.message)
        except OperationalError:
            raise
        except Exception as error:
            self._broke(claim, error)

    def _broke(self, claim: Claim, error: Exception) -> None:
        """A fault of ours. Its text may hold anything, so only its kind and place are kept."""
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{type(error).__name__} in {os.path.basename(place.filename)}, line {place.lineno}"
        log.error("job %s (%s) broke: %s", to_text(claim.job_id), claim.kind, where)
        try:
            if claim.failures + 1 >= BROKEN_TRIES:
                claims.fail(claim, JobBroke.code, f"{where}, {BROKEN_TRIES} times. This is a fault to report.")
            else:
                claims.try_again_later(claim, JobBroke.code, f"{where}. It is tried again.")
        except LeaseLost:
            pass


def _function(path: str) -> Callable[..., Any]:
    module, _, name = path.partition(":")
    return cast(Callable[..., Any], getattr(import_module(module), name))


@contextmanager
def _renewing(claim: Claim) -> Iterator[None]:
    done = threading.Event()

    def renew() -> None:
        while not done.wait(RENEW_SECONDS):
            try:
                with claim.database.write() as session:
                    claim.prove(session)
            except LeaseLost:
                return  # the work itself finds out at its next write
            except WorkerStopping:
                return
            except OperationalError:
                continue

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _say_alive(session: Session, name: str, started: datetime) -> None:
    at = now()
    statement = insert_into(session, Worker).values(name=name, started_at=started, seen_at=at)
    session.execute(statement.on_conflict_do_update(index_elements=["name"], set_={"seen_at": at}))
    session.execute(delete(Worker).where(Worker.seen_at < at - WORKER_GONE))


def _forget_old(session: Session) -> None:
    """Ids grow with time, so each of these looks at the oldest rows only."""
    at = now()
    ended = (Job.state.in_(("done", "cancelled")), Job.id < id_of_moment(at - KEEP_DONE))
    session.execute(delete(Job).where(*ended))
    session.execute(delete(Job).where(Job.state == "failed", Job.id < id_of_moment(at - KEEP_FAILED)))
    delivered = (OutboxEvent.delivered_at.is_not(None), OutboxEvent.id < id_of_moment(at - KEEP_DONE))
    session.execute(delete(OutboxEvent).where(*delivered))


def id_of_moment(moment: datetime) -> int:
    """The smallest id that can have been made at this time or later."""
    return max(0, (to_micros(moment) // 1000 - EPOCH_MS) << RANDOM_BITS)
