"""The background of the recorder, one per process: a thread for the disk, one that sends, and one for heartbeats, which
first imports what is needed for sending: on a busy machine that takes seconds, and the disk must not wait for it.

A fork leaves all of it to the parent: in the child nothing is sent or written, until the child starts a run itself.
At the end of the process the background gets `EXIT_SECONDS` to send what is left; the rest waits on disk for the next
start. No signal is caught: SIGTERM does what it does without us.
"""

import atexit
import concurrent.futures.thread  # noqa: F401  # its import adds a hook at exit, which a thread may not do that late
import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cairn.pace import Pace
from cairn.spool.places import roots
from cairn.spool.writer import SpoolWriter

TICK_SECONDS = 0.25
SYNC_SECONDS = 1.0
HEARTBEAT_SECONDS = 20.0
LOOK_SECONDS = 0.5  # between looks for an attempt that has just been opened, which beats at once
EXIT_SECONDS = 5.0
START_SECONDS = 0.1  # for the folder to be made; where the disk is slower, records wait in memory
_log = logging.getLogger("cairn")
Record = dict[str, Any]


class Engine:
    """Threads and spool of one process."""

    def __init__(self, spool_roots: list[Path] | None = None) -> None:
        self.pid = os.getpid()
        self.recorders: list[Any] = []
        self._roots = spool_roots if spool_roots is not None else roots()
        self._said: set[str] = set()
        self._to_say: deque[str] = deque(maxlen=100)
        self.writer = SpoolWriter(self._roots, self.warn)
        self._stop, self._ready, self._sends = threading.Event(), threading.Event(), threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="cairn-keeper", daemon=True)
        self._pulse = threading.Thread(target=self._send_and_beat, name="cairn-pulse", daemon=True)
        self._sender: Any = None
        self._pace = Pace()
        self._chores_at = 0.0

    def start(self) -> None:
        """Begins; returns when the spool can be written to, or after `START_SECONDS`."""
        self._keeper.start()
        self._ready.wait(START_SECONDS)
        self._pulse.start()

    def warn(self, message: str) -> None:
        """Says something once, from the background: a log handler may be slow."""
        kind = "".join(letter for letter in message if not letter.isdigit())[:60]
        if kind not in self._said:
            self._said.add(kind)
            self._to_say.append(message)

    def is_ours(self) -> bool:
        return os.getpid() == self.pid

    def flush(self, seconds: float) -> bool:
        """Waits until the service has everything; False where `seconds` were not enough, and as soon as it is sure that
        something was refused or lost."""
        ends = time.monotonic() + seconds
        with self._pace.hurried():
            while True:
                standing = self.standing()
                if standing is not None and not standing.waiting:
                    return not standing.refused and not self.writer.lost
                if time.monotonic() >= ends:
                    return False
                time.sleep(0.02)

    def standing(self) -> Any:
        """How many records reached the service, were refused, and wait (`cairn.spool.sending.Standing`). None before
        the background sends, and while points are still to be written."""
        pending = any(recorder.has_points() for recorder in self.recorders)  # asked first: then they have numbers
        sender = self._sender
        return None if pending or sender is None else sender.standing()

    def close(self, seconds: float = EXIT_SECONDS) -> bool:
        """Writes what waits, sends as much as the time allows, and ends. True where nothing is left."""
        ends = time.monotonic() + seconds
        self._stop.set()
        self._pace.hurry()
        self.writer.is_due.set()
        self._keeper.join(max(ends - time.monotonic(), 0))
        self._sends.wait(max(ends - time.monotonic(), 0))
        sender = self._sender
        if sender is not None:
            sender.finish()
            sender.join(max(ends - time.monotonic(), 0))
        done = False
        if not self._keeper.is_alive():
            self.writer.close()  # from here on no call is told that its record is on disk
            if sender is not None and not sender.is_alive():
                done = not self.standing().waiting and not self.writer.lost
                if done and self.writer.holds() and sender.delivery is not None:
                    sender.delivery.backlog.remove()
            if self._sends.is_set() and (sender is None or not sender.is_alive()):
                self.writer.release()
        self._speak()
        return done

    def abandon(self) -> None:
        """In a forked child: nothing of this is ours."""
        self.pid = -1
        self.writer.forget_after_fork()

    # The threads

    def _keep(self) -> None:
        synced = 0.0
        while True:
            last = self._stop.is_set()
            self._safely(self.writer.tick)
            self._ready.set()
            for recorder in list(self.recorders):
                self._safely(recorder.drain)
            self._safely(self.writer.tick)
            if last or time.monotonic() - synced >= SYNC_SECONDS:
                synced = time.monotonic()
                self._safely(self.writer.sync)
            self._speak()
            if last:
                return
            self.writer.is_due.wait(TICK_SECONDS)
            self.writer.is_due.clear()

    def _start_sending(self) -> None:
        """Imported here, in the background: a training's start does not wait for it."""
        self._pace.keep()
        with _importing:
            from cairn.recorder.preload import preload
        preload(_importing)
        with _importing:
            from cairn.recorder.prepare import Prepared
            from cairn.spool.sending import Sender
        others: Callable[[], Any] = lambda: Prepared(self.warn, own=False)  # noqa: E731
        own = Prepared(self.warn, own=True)
        sender = Sender(self.writer, self._roots, own, others, self.warn, self._chores, self._pace)
        sender.start()
        self._sender = sender  # known to the rest only once it can be waited for
        if self._stop.is_set():
            sender.finish()  # whoever ends the process may have given up waiting for it

    def _chores(self, delivery: Any) -> None:
        """From time to time: were the files of a save completed?"""
        if time.monotonic() - self._chores_at < UNFINISHED_SECONDS:
            return
        self._chores_at = time.monotonic()
        delivery.look_again()

    def _send_and_beat(self) -> None:
        self._safely(self._start_sending)
        self._sends.set()
        if self._sender is not None:
            self._beat()

    def _beat(self) -> None:
        from cairn.errors import CairnError
        from cairn.spool.sending import quick_client

        beaten: set[str] = set()
        due = 0.0
        while not self._stop.wait(min(LOOK_SECONDS, HEARTBEAT_SECONDS)):
            fresh = {each.key for each in self._open_ones()} - beaten
            if not fresh and time.monotonic() < due:
                continue
            due = time.monotonic() + HEARTBEAT_SECONDS
            try:
                client = quick_client(5.0)
                for recorder in list(self.recorders):
                    recorder.beat(client, self._sender.delivery)
                client.close()
                beaten |= fresh
            except CairnError:
                continue  # the sender speaks of it
            except Exception:
                _log.debug("a heartbeat failed", exc_info=True)

    def _open_ones(self) -> list[Any]:
        """The recorders whose attempt has its number: until it was heard of once, nobody would miss it."""
        return [each for each in list(self.recorders) if each.is_open(self._sender.delivery)]

    def _safely(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as fault:
            self.warn(f"the recorder met a fault of its own: {type(fault).__name__}: {fault}")

    def _speak(self) -> None:
        with contextlib.suppress(IndexError):  # the end of the process speaks too
            while True:
                _log.warning("cairn: %s", self._to_say.popleft())


UNFINISHED_SECONDS = 15.0
FORK_SECONDS = 10.0
_engine: Engine | None = None
_making = threading.Lock()
# Held while the background imports: in a child that is forked meanwhile those modules would stay half made for ever.
_importing = threading.Lock()
_forking: set[int] = set()  # the threads that hold it for their fork
# Of the parents of this process: their sockets are shared with them and must not be tidied away.
_abandoned: list[Engine] = []


def engine() -> Engine:
    """That of this process, begun where it is the first time."""
    global _engine
    with _making:
        if _engine is None or not _engine.is_ours():
            _engine = Engine()
            _engine.start()
        return _engine


def shut_down(seconds: float = EXIT_SECONDS) -> bool:
    """Ends the background of this process, as at its exit; a later start begins anew. True where nothing is left."""
    global _engine
    current, _engine = _engine, None
    if current is None or not current.is_ours():
        return True
    for recorder in list(current.recorders):
        recorder.at_exit()
    return current.close(seconds)


def _before_fork() -> None:
    if _importing.acquire(timeout=FORK_SECONDS):
        _forking.add(threading.get_ident())


def _after_fork_in_parent() -> None:
    if threading.get_ident() in _forking:
        _forking.discard(threading.get_ident())
        _importing.release()


def _after_fork_in_child() -> None:
    global _engine, _making, _importing
    _making, _importing = threading.Lock(), threading.Lock()
    _forking.clear()
    if _engine is not None:
        _engine.abandon()
        _abandoned.append(_engine)
        _engine = None


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
atexit.register(shut_down)
