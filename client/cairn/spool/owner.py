"""The process that holds a spool, named so that whoever comes later can ask whether it still lives."""

import json
import os
import socket
from dataclasses import dataclass
from typing import Any

RELEASED = "released"


@dataclass(frozen=True)
class Owner:
    """The process that holds a spool. `started` is its start in clock ticks, so that a number used again is told."""

    host: str
    pid: int
    boot: str
    namespace: str
    started: str

    @classmethod
    def of_this_process(cls) -> "Owner":
        return cls(socket.gethostname(), os.getpid(), _boot(), _namespace(), start_of("self"))

    @classmethod
    def nobody(cls) -> "Owner":
        """Who gives a spool up says so in its place."""
        return cls(socket.gethostname(), 0, _boot(), _namespace(), RELEASED)

    @classmethod
    def from_json(cls, text: str) -> "Owner":
        """Raises ValueError, KeyError or TypeError for what is none."""
        said: Any = json.loads(text)
        return cls(*(type_(said[name]) for name, type_ in _FIELDS))

    def to_json(self) -> str:
        return json.dumps(vars(self))

    @property
    def is_near(self) -> bool:
        """Whether it runs, or ran, where its process can be asked for. A kernel without a name tells nothing."""
        return self.boot != "" and (self.boot, self.namespace) == (_boot(), _namespace())

    def lives(self) -> bool:
        """Only for one that is near."""
        if self.pid <= 0:
            return False
        if self.started:
            return start_of(self.pid) == self.started
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except OSError:
            return True
        return True


def start_of(process: int | str) -> str:
    """Its start time in clock ticks since boot; '' where the system does not tell or the process is gone."""
    fields = _first_line(f"/proc/{process}/stat").rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):  # one that has ended and only waits to be collected
        return ""
    return fields[19]


_FIELDS: tuple[tuple[str, Any], ...] = (
    ("host", str),
    ("pid", int),
    ("boot", str),
    ("namespace", str),
    ("started", str),
)


def _boot() -> str:
    return _first_line("/proc/sys/kernel/random/boot_id")


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.readline().strip()
    except OSError:
        return ""
