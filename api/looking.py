"""The thread of `cairn-server serve` that looks at standing watches which have something new.

Every serving process has one: a round reads one small table, and a watch that two of them look at is settled once.
"""

import logging
import threading

from registry.db import Database

log = logging.getLogger("cairn.looking")

EVERY_SECONDS = 1.0


class Lookout(threading.Thread):
    def __init__(self, database: Database, every_seconds: float = EVERY_SECONDS) -> None:
        super().__init__(name="cairn-lookout", daemon=True)
        self._database = database
        self._every_seconds = every_seconds
        self._stopped = threading.Event()

    def run(self) -> None:
        failed = False
        while not self._stopped.wait(self._every_seconds):
            try:
                from registry.watches.look import look_at_due  # numpy and the scan: not before the start is over

                opened = look_at_due(self._database)
                if opened:
                    log.warning("watches opened %d findings", opened)
                failed = False
            except Exception as error:
                # A database that is away for a while ends no watch; said once for each while.
                if not failed:
                    log.warning("could not look at watches: %s", type(error).__name__)
                failed = True

    def stop(self) -> None:
        """Returns when the round that runs now is over, at most 5 s later."""
        self._stopped.set()
        if self.is_alive():
            self.join(5)
