"""Reads on in files that grow: logs, metric files of MLflow. A file that is cut or replaced begins anew."""

import os
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import IO

from cairn.formats.logs import MAX_LINE
from cairn.watch.state import State

# Of one file in one look; what is left comes with the next.
BYTES_A_LOOK = 32 * 1024 * 1024


@dataclass
class Tail:
    """Where a file was left. `attempt`: whose lines it holds now, 0 before the first; `step`: the last one read."""

    path: str
    file: str = ""
    offset: int = 0
    attempt: int = 0
    step: int = -1


def load_tail(state: State, path: str) -> Tail:
    for row in state.rows("SELECT path, file, offset, attempt, step FROM tail WHERE path = ?", (path,)):
        return Tail(**dict(row))
    return Tail(path)


def save_tail(state: State, tail: Tail) -> None:
    state.change("INSERT OR REPLACE INTO tail VALUES (?, ?, ?, ?, ?)", astuple(tail))


def new_lines(tail: Tail) -> Iterator[str]:
    """The whole lines since the last look; moves the tail on. Raises OSError.

    A line longer than those of logs is passed over; a last line without its end waits for it.
    """
    with open(tail.path, "rb") as file:
        found = os.fstat(file.fileno())
        identity = f"{found.st_dev}:{found.st_ino}"
        if identity != tail.file or found.st_size < tail.offset:
            tail.file, tail.offset = identity, 0
        file.seek(tail.offset)
        end = tail.offset + BYTES_A_LOOK
        while tail.offset < end:
            line = file.readline(MAX_LINE)
            whole = line.endswith(b"\n")
            if not whole and (len(line) < MAX_LINE or not _pass_over(file)):
                return
            tail.offset = file.tell()
            if whole:
                yield line.decode("utf-8", "replace")


def _pass_over(file: IO[bytes]) -> bool:
    """Reads to the end of a line that is too long; whether it has one."""
    while part := file.readline(MAX_LINE):
        if part.endswith(b"\n"):
            return True
    return False
