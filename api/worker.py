"""`cairn-server worker`, and the worker that `serve` keeps beside itself on the embedded database.

A worker is a process of its own: trackers' libraries, which are large, are loaded there and nowhere else.
"""

import logging
import os
import select
import signal
import subprocess
import sys
import threading
import time
from queue import SimpleQueue
from types import FrameType
from typing import IO, Final, cast

from registry.config import Settings, read_settings
from registry.db import Database
from registry.jobs.worker import JobWorker

log = logging.getLogger(__name__)

START_AGAIN_SECONDS: Final = 5.0
STOP_SECONDS: Final = 10.0
ORPHAN_SECONDS: Final = 3.0  # in which a worker whose parent was killed may give back its job; a restore waits longer


def run_worker(settings: Settings, database: Database, *, parent: int | None = None) -> None:
    """Work until told to stop, by SIGTERM or SIGINT, or until nobody holds the other end of the pipe `parent`."""
    worker, told = JobWorker(database, settings), SimpleQueue[int]()

    def stop(number: int, frame: FrameType | None) -> None:
        told.put(number)  # waits for no lock; `Event.set` waits for one that whoever was interrupted may hold

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=_stop_when_told, args=(worker, told), name="signals", daemon=True).start()
    if parent is not None:
        if select.select([parent], [], [], 0)[0]:  # gone while this process was starting
            return
        threading.Thread(target=_watch, args=(worker, parent), name="parent", daemon=True).start()
    worker.run()


def _stop_when_told(worker: JobWorker, told: "SimpleQueue[int]") -> None:
    told.get()
    worker.stop()


def _watch(worker: JobWorker, parent: int) -> None:
    """A killed parent tells nobody, but the pipe that it alone could write to ends with it, at once.

    What waits for a tracker or a lock by then ends as a killed worker does: it costs nothing that was done, and whoever
    restores a backup finds nobody at the database."""
    os.read(parent, 1)
    worker.stop()
    time.sleep(ORPHAN_SECONDS)
    os._exit(1)


class WorkerBeside:
    """A worker as a child of this process: started again where it dies, ended with it."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="worker", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        child = self._child
        if child is not None and child.poll() is None:
            child.terminate()
            try:
                child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
        self._thread.join(STOP_SECONDS)

    def _keep(self) -> None:
        while not self._stopping.is_set():
            child = self._child = subprocess.Popen([sys.executable, "-m", "api.worker"], stdin=subprocess.PIPE)
            if self._stopping.is_set():  # told to stop between the two
                child.terminate()
            code = child.wait()
            cast(IO[bytes], child.stdin).close()
            if not self._stopping.is_set():
                log.warning("the worker ended with %s; it is started again", code)
                self._stopping.wait(START_AGAIN_SECONDS)


def main() -> None:
    """The worker beside `serve`, which has brought the database to its schema already."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = read_settings()
    run_worker(settings, Database(settings.database_url, readers=2), parent=sys.stdin.fileno())


if __name__ == "__main__":
    main()
