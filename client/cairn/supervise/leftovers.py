"""What a job has left running: before it is started again that has to end, or two trainings write one run's checkpoints
and the GPUs are taken.

Workers outlive a launcher that was killed, in sessions of their own. Each is known by the key of its attempt, which
stands in the environment that it was started with; where there is no /proc to read it from, nothing is ended.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

KINDLY_SECONDS: Final = 10.0
AT_LAST_SECONDS: Final = 5.0  # for a process that is killed, and may be in a call to a disk or a GPU
POLL_SECONDS: Final = 0.05
_PROCESSES: Final = Path("/proc")


def end_leftovers(key: str, say: Callable[[str], None], kindly_seconds: float = KINDLY_SECONDS) -> None:
    """Ends the processes of an attempt: asks them, and kills those that have not gone in time."""
    found = set(left_running(key))
    if not found:
        return
    many = "a process" if len(found) == 1 else f"{len(found)} processes"
    say(f"{many} that the job has left running will be ended ({', '.join(map(str, sorted(found)[:10]))}).")
    for number, seconds in ((signal.SIGTERM, kindly_seconds), (signal.SIGKILL, AT_LAST_SECONDS)):
        if not (found := set(left_running(key))):
            return
        for each in found:
            with contextlib.suppress(OSError):
                os.kill(each, number)
        _wait(key, seconds)
    if found := set(left_running(key)):
        say(f"{len(found)} of them cannot be ended ({', '.join(map(str, sorted(found)[:10]))}).")


def left_running(key: str) -> Iterator[int]:
    """The processes of this host that were started for an attempt."""
    mark = f"\0CAIRN_ATTEMPT_KEY={key}\0".encode()
    with contextlib.suppress(OSError):
        for entry in os.listdir(_PROCESSES):
            if entry.isdigit() and int(entry) != os.getpid():
                with contextlib.suppress(OSError):  # it has ended, or is another user's
                    if mark in b"\0" + (_PROCESSES / entry / "environ").read_bytes() + b"\0":
                        yield int(entry)


def _wait(key: str, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until and next(left_running(key), None) is not None:
        time.sleep(POLL_SECONDS)
