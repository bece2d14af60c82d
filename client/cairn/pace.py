"""Rests of a background thread between small pieces of its work, so that training hardly notices that it is there.

Python runs one thread at a time and takes the turn from a busy one only after 5 ms (`sys.getswitchinterval`, which
belongs to the training): a call that gives its turn up for a moment, as every write and every operation of torch does,
then waits so long for it. What works in pieces of a fraction of a millisecond, with real pauses between them, keeps
nobody waiting for longer than one piece.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PIECE_SECONDS = 0.000_2  # of processor time, after which a rest is due
REST_FOR_WORK = 4.0  # of five parts of the time four are training's
LONGEST_REST_SECONDS = 0.05
_own = threading.local()


class Pace:
    """How threads of the background work. Who waits for them lets them hurry."""

    def __init__(self) -> None:
        self._in_a_hurry = 0

    def keep(self) -> None:
        """From here on the calling thread rests wherever `rest` is called."""
        _own.pace, _own.rested = self, time.thread_time()

    def hurry(self) -> None:
        """No more rests: the process ends."""
        self._in_a_hurry += 1

    @contextmanager
    def hurried(self) -> Iterator[None]:
        """No rests meanwhile: somebody waits for what the thread does."""
        self._in_a_hurry += 1
        try:
            yield
        finally:
            self._in_a_hurry -= 1

    def rest(self) -> None:
        """For a thread that keeps this pace."""
        worked = time.thread_time() - _own.rested
        if worked < PIECE_SECONDS:
            return
        if not self._in_a_hurry:
            time.sleep(min(worked * REST_FOR_WORK, LONGEST_REST_SECONDS))
        _own.rested = time.thread_time()


def rest() -> None:
    """A good moment for a rest. Does nothing in a thread that keeps no pace."""
    if (pace := getattr(_own, "pace", None)) is not None:
        pace.rest()


def is_gentle() -> bool:
    """Whether this thread keeps a pace."""
    return hasattr(_own, "pace")
