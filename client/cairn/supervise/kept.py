"""What could not be sent yet, in one small file per job; the next `cairn exec`, or `cairn spool flush`, sends it.

Every request in it may be sent twice without harm: attempts and incidents have keys of their own.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from cairn.spool.places import roots
from cairn.spool.service import is_same

FOLDER: Final = "exec"
MAX_FILE_BYTES: Final = 4 * 1024 * 1024


@dataclass
class Request:
    """`what`: open (an attempt), end (it), incident. `body` is plain JSON."""

    what: str
    key: str
    body: dict[str, Any]


class Kept:
    """The file of one job. Nothing here raises: a full disk must not reach the job."""

    def __init__(self, run: str, folder: Path | None = None) -> None:
        self.service = ""  # for which service it is, once that is known
        self._run = run
        self._folder = folder if folder is not None else home()
        self._path = self._folder / f"{os.getpid()}-{secrets.token_hex(6)}.json"
        self._saved: str | None = None

    def save(self, requests: Sequence[Request]) -> bool:
        """Whether they are on disk now; none are taken off it."""
        if not requests:
            self._saved = None
            with contextlib.suppress(OSError):
                self._path.unlink()
            return True
        left = Left(self._path, self._run, self.service, list(requests))
        text = left.text()
        if text == self._saved:
            return True
        try:
            left.write()
        except OSError:
            return False
        self._saved = text
        return True

    @property
    def folder(self) -> Path:
        return self._folder

    def others(self) -> "Iterator[Left]":
        """Those of jobs before this one. A file that cannot be read is left where it is."""
        yield from (each for each in left_in(self._folder) if each.path != self._path)


@dataclass
class Left:
    """What one job could not send, as it lies in its file."""

    path: Path
    run: str
    service: str
    requests: list[Request]

    def is_for(self, url: str) -> bool:
        """Where nobody has said for which service it is, it may be any."""
        return not self.service or is_same(self.service, url)

    def text(self) -> str:
        requests = [asdict(each) for each in self.requests]
        return json.dumps({"run": self.run, "service": self.service, "requests": requests})

    def write(self) -> None:
        """Raises OSError."""
        scratch = self.path.with_suffix(".part")
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.text())
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, self.path)


def home() -> Path:
    """Beside the spools of the recorder."""
    return roots()[0] / FOLDER


def left_in(folder: Path) -> Iterator[Left]:
    """What jobs have left in a folder, in the order of the files' names."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob("*.json")):
            if (found := _read(path)) is not None:
                yield found


def _read(path: Path) -> Left | None:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        said = json.loads(path.read_text(encoding="utf-8"))
        requests = [Request(each["what"], each["key"], dict(each["body"])) for each in said["requests"]]
        return Left(path, str(said["run"]), str(said.get("service", "")), requests)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
