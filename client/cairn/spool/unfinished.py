"""Saves whose files were not whole when they were looked at: pending at the service, until somebody looks again.

One small file each below `ROOT/unfinished`, so that the next start or `cairn spool flush` finds them when the process
that recorded them is gone.
"""

import contextlib
import hashlib
import json
import os
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cairn.spool.service import is_same

FOLDER = "unfinished"
KEPT_SECONDS = 30 * 86_400.0  # a save that was broken off is not looked at for ever
Record = dict[str, Any]


@dataclass(frozen=True)
class Save:
    """What was recorded, what was sent for it, and the facts of its attempt. `path` holds it; None: in memory only."""

    record: Record
    item: Record
    facts: Record
    path: Path | None = None

    @property
    def run(self) -> str:
        return f"{self.facts.get('project', '?')}/{self.facts.get('run', '?')}"

    @property
    def paths(self) -> list[str]:
        paths = self.record.get("paths")
        return [each for each in paths if isinstance(each, str)] if isinstance(paths, list) else []

    def is_gone(self, *, surely: bool = False) -> bool:
        """Whether none of its copies is there, as this host sees it, where it was recorded. `surely`: the folder around
        each is there, so that it is no storage which is only not mounted."""
        if self.record.get("host") != socket.gethostname() or any("://" in path for path in self.paths):
            return False
        around = (os.path.dirname(os.path.abspath(path)) for path in self.paths)
        return not any(map(os.path.exists, self.paths)) and (not surely or all(map(os.path.isdir, around)))


class Unfinished:
    """Those below one root; where that cannot be written, those of this process."""

    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER
        self._memory: dict[str, Save] = {}

    def keep(self, url: str, save: Save) -> None:
        which = (url, save.facts["run_id"], save.facts["number"], save.item["step"], save.item["kind"])
        name = hashlib.sha256(json.dumps(which).encode()).hexdigest()[:32] + ".json"
        said = {"service": url, "record": save.record, "item": save.item, "facts": save.facts}
        scratch = self._folder / f".{os.getpid()}-{name}"
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True, parents=True)
            with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
                json.dump(said, file)
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, self._folder / name)
        except OSError:
            self._memory[name] = save

    def saves(self, url: str | None = None) -> Iterator[Save]:
        """Those of one service, or of any. Ones that are too old are thrown away."""
        yield from list(self._memory.values())
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(".json") and name[0] != ".")
        except OSError:
            return
        for name in names:
            path = self._folder / name
            try:
                if time.time() - path.stat().st_mtime > KEPT_SECONDS:
                    path.unlink()
                    continue
                said = json.loads(path.read_text("utf-8"))
                save = Save(dict(said["record"]), dict(said["item"]), dict(said["facts"]), path)
            except (OSError, ValueError, KeyError, TypeError, RecursionError):
                continue
            if url is None or is_same(str(said.get("service")), url):
                yield save

    def drop(self, save: Save) -> None:
        """It is committed, or never will be."""
        self._memory = {name: each for name, each in self._memory.items() if each is not save}
        if save.path is not None:
            with contextlib.suppress(OSError):
                save.path.unlink()
