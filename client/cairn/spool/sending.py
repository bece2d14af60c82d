"""The background that sends: the spool of this process and those that dead processes have left."""

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cairn.client import Client
from cairn.errors import BadSettings, CairnError, ConnectionFailed, Unauthenticated
from cairn.pace import Pace, rest
from cairn.spool.adopted import Adopted, adopt
from cairn.spool.backlog import Backlog
from cairn.spool.delivery import Delivery, Warn
from cairn.spool.frames import Framed
from cairn.spool.lease import is_silent, newest_lease
from cairn.spool.places import spool_folders
from cairn.spool.refused import passes
from cairn.spool.saves import Preparer
from cairn.spool.writer import SpoolWriter
from cairn.transport import Retries

IDLE_SECONDS = 0.3
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 60.0
ADVICE_SECONDS = 60.0  # between tries of what waits for a person
LOOK_SECONDS = 300.0  # between looks for what others have left
TIMEOUT_SECONDS = 20.0
MAX_TIMEOUT_SECONDS = 120.0
SILENT_SECONDS = 5.0  # between looks at an owner that has fallen silent
MAX_RETRY_AFTER_SECONDS = 3_600.0
_NO_FOLDER = Path("/nonexistent/cairn-spool")  # while nothing can be written


def quick_client(timeout: float = TIMEOUT_SECONDS) -> Client:
    """A client that tries once: the sender itself repeats. Raises `BadSettings`."""
    return Client(timeout=timeout, retries=Retries(count=0))


def runs_of(folder: Path) -> set[tuple[str, str]]:
    """(project, run) of the records that wait in a spool."""
    backlog = Backlog(folder)
    waiting = (each.record for each in backlog.records() if each.number > backlog.stream(each.record["key"]).done)
    named = ((record.get("project"), record.get("run")) for record in waiting)
    return {(project, run) for project, run in named if isinstance(project, str) and isinstance(run, str)}


def _newest(folder: Path) -> int:
    try:
        return newest_lease(folder)
    except OSError:
        return 0


def _trouble(fault: CairnError) -> str:
    if isinstance(fault, ConnectionFailed):
        return "the service cannot be reached"
    if isinstance(fault, BadSettings):
        return "nothing can be sent with these settings"
    return "the service does not take records just now"


@dataclass(frozen=True)
class Standing:
    """Of the records of this process: how many the service has, how many it refused, and how many it was not asked
    about, or has not answered for."""

    reached: int
    refused: int
    waiting: int


class Sender(threading.Thread):
    """Sends as long as the process lives. `finish` lets it end as soon as everything is sent."""

    def __init__(
        self,
        writer: SpoolWriter,
        roots: Sequence[Path],
        own: Preparer,
        others: Callable[[], Preparer],
        warn: Warn,
        chores: Callable[[Delivery], None] = lambda delivery: None,
        pace: Pace | None = None,
    ) -> None:
        super().__init__(name="cairn-sender", daemon=True)
        self.delivery: Delivery | None = None
        self.timeout = TIMEOUT_SECONDS
        self._writer, self._roots, self._own, self._others = writer, roots, own, others
        self._warn, self._chores = warn, chores
        self._pace = pace or Pace()
        self._client: Client | None = None
        self._adopted: list[Adopted] = []
        self._ending, self._finishing = threading.Event(), False
        self._look_at, self._advice_at, self._failures = 0.0, 0.0, 0
        self._may_open = False

    def finish(self) -> None:
        """No more records will come: end when all is sent."""
        self._finishing = True
        self._pace.hurry()
        self._ending.set()

    def run(self) -> None:
        self._pace.keep()
        while True:
            try:
                rest()
                pause = self._round()
                self._failures = 0
            except CairnError as fault:
                pause = self._after(fault)
            except Exception as fault:  # a mistake of ours must not end the sending of all that follows
                self._warn(f"the recorder met a fault of its own: {type(fault).__name__}: {fault}")
                pause = MAX_PAUSE_SECONDS
            if self._finishing and (pause < 0 or self._failures > 2):
                return self._give_up()
            if pause != 0:
                self._ending.wait(abs(pause) if not self._finishing else min(abs(pause), 1.0))
            if self._finishing:
                self._ending.clear()

    def standing(self) -> Standing:
        """Counted by number: only what the service has answered for has reached it, whatever lies in which folder."""
        last, delivery = self._writer.last, self.delivery
        if delivery is None:
            return Standing(0, 0, last)
        settled, refused = delivery.backlog.settled, delivery.refusals
        answered = last if settled.through >= last else len(settled)
        return Standing(max(answered - refused, 0), refused, max(last - answered, 0))

    # How. A round answers the seconds to the next: 0 goes on at once, below 0 there is nothing to do.

    def _round(self) -> float:
        client = self._client = self._client or quick_client(self.timeout)
        now = time.monotonic()
        silent = self._silent()  # asked first: one that counts as dead a moment later is taken over before own is sent
        is_first = self._look_at == 0.0  # of a short process too: what is sent of it would precede what others left
        if now >= self._look_at and (is_first or not self._finishing):
            self._look_at = now + LOOK_SECONDS
            self._adopted += adopt(self._roots, self._writer.folder, client, self._others, self._warn)
        if now >= self._advice_at:
            self._advice_at = now + ADVICE_SECONDS
            self._retry_waiting()
        for each in list(self._adopted):
            try:
                if each.step():
                    return 0
                if not each.delivery.waiting:
                    if not each.finish():
                        each.lease.release()
                    self._adopted.remove(each)
            except Exception as fault:
                if isinstance(fault, CairnError) and passes(fault):
                    raise
                each.failed(fault)  # what another job has left must not hold up this one
                self._adopted.remove(each)
        if self._awaits(silent) and not self._finishing:
            return SILENT_SECONDS
        return self._round_of_own(client)

    def _silent(self) -> list[Path]:
        """Spools whose owner, on another host, has fallen silent: renewed or taken over within `EXPIRY_SECONDS`."""
        if self._may_open:
            return []
        others = (folder for root in self._roots for folder in spool_folders(root) if folder != self._writer.folder)
        return [folder for folder in others if is_silent(folder, _newest(folder))]

    def _awaits(self, silent: Sequence[Path]) -> bool:
        """Whether the execution before this one may lie in one of them: its attempt has to be opened first."""
        if self._may_open or self._writer.folder is None:
            return False
        own = runs_of(self._writer.folder)
        awaited = [folder for folder in silent if not own or own & runs_of(folder)]
        self._may_open = bool(own) and not awaited
        if awaited:
            self._look_at = 0.0
        return bool(awaited)

    def _round_of_own(self, client: Client) -> float:
        delivery = self._own_delivery(client)
        if (delivery.backlog.settled.through < self._writer.last or self._finishing) and (
            delivery.step() or self._from_memory(delivery)
        ):
            return 0
        self._chores(delivery)
        delivery.backlog.prune()
        return -IDLE_SECONDS

    def _own_delivery(self, client: Client) -> Delivery:
        """That of the folder which is written to now; what is known of its streams goes along to another one."""
        folder = self._writer.folder
        if self.delivery is None or (folder is not None and self.delivery.backlog.folder != folder):
            root = folder.parent if folder else self._roots[0]
            fresh = Delivery(Backlog(folder or _NO_FOLDER), client, self._own, warn=self._warn, root=root)
            if self.delivery is not None:
                fresh.follow(self.delivery)
            fresh.backlog.belongs_to(client.url)
            self.delivery = fresh
        return self.delivery

    def _from_memory(self, delivery: Delivery) -> bool:
        for number, record in self._writer.from_memory(1, delivery.waiting):
            if isinstance(record.get("key"), str):
                delivery.send([Framed(number, record, 0)])
                if record["key"] in delivery.waiting:
                    return True
            else:  # one that could not be made
                delivery.backlog.settled.add(number)
            self._writer.sent_from_memory(number)
            return True
        return False

    def _give_up(self) -> None:
        """The end: what could not be sent of others is there for whoever comes next."""
        for each in self._adopted:
            each.lease.release()

    def _retry_waiting(self) -> None:
        if self.delivery is not None and self.delivery.waiting:
            self.delivery.retry_waiting()
        for each in self._adopted:
            each.delivery.retry_waiting()

    def _after(self, fault: CairnError) -> float:
        self._failures += 1
        if isinstance(fault, Unauthenticated):
            self._warn(
                f"the service does not accept the token: {fault.detail} The records are kept. Set CAIRN_TOKEN or run "
                "`cairn login`; then they are sent."
            )
            self._renew_client()
            return ADVICE_SECONDS
        if isinstance(fault, ConnectionFailed) and "in time" in fault.detail:
            self.timeout = min(self.timeout * 2, MAX_TIMEOUT_SECONDS)
            self._renew_client()
        if self._failures == 3:
            self._warn(f"{_trouble(fault)} ({fault.detail}) Records are kept and sent later.")
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(self._failures, 10), MAX_PAUSE_SECONDS)
        pause *= random.uniform(0.5, 1.0)  # noqa: S311 - a thousand jobs must not come back at once
        return max(pause, min(fault.retry_after or 0.0, MAX_RETRY_AFTER_SECONDS))

    def _renew_client(self) -> None:
        """With settings read again: a person may have mended them."""
        try:
            self._client = quick_client(self.timeout)
        except CairnError:
            return
        for each in (self.delivery, *(adopted.delivery for adopted in self._adopted)):
            if each is not None:
                each.use(self._client)
