"""The thread of `cairn-server serve` that notices lost and stalled attempts. Every serving process has one.

A round reads a small index of running attempts, and takes the database's writing connection only where it has
something to open.
"""

import logging
import threading
from datetime import timedelta

from registry.db import Database, now
from registry.ids import to_text

log = logging.getLogger("cairn.watchdog")


def look(database: Database, lost_after: timedelta, stalled_after: timedelta = timedelta(minutes=5)) -> list[int]:
    """One round: the ids of the incidents that it opened."""
    from registry.incidents import watch

    at = now()
    with database.read() as session:
        noticed = [
            *watch.find_silent(session, at, lost_after),
            *watch.find_stalled(session, at, lost_after, stalled_after),
        ]
    if not noticed:
        return []
    with database.write() as session:
        return watch.open_noticed(session, noticed, at, lost_after, stalled_after)


class Watchdog(threading.Thread):
    """Looks every so many seconds, the first time after the first pause: a start waits for nothing."""

    def __init__(
        self, database: Database, every_seconds: float, lost_after_seconds: float, stalled_after_seconds: float = 300
    ) -> None:
        super().__init__(name="cairn-watchdog", daemon=True)
        self._database = database
        self._every_seconds = every_seconds
        self._lost_after = timedelta(seconds=lost_after_seconds)
        self._stalled_after = timedelta(seconds=stalled_after_seconds)
        self._stopped = threading.Event()

    def run(self) -> None:
        failed = False
        while not self._stopped.wait(self._every_seconds):
            try:
                for identity in look(self._database, self._lost_after, self._stalled_after):
                    log.warning("opened incident %s", to_text(identity))
                failed = False
            except Exception as error:
                # A database that is away for a while ends no watch; said once for each while.
                if not failed:
                    log.warning("could not look for lost attempts: %s", type(error).__name__)
                failed = True

    def stop(self) -> None:
        """Returns when the round that runs now is over, at most 5 s later."""
        self._stopped.set()
        if self.is_alive():
            self.join(5)
