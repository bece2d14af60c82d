"""Which pieces of a fetch are there: one line each, beside the folder that it writes into."""

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from cairn.errors import Conflict
from cairn.fetch.pieces import Piece
from cairn.formats.checkpoints import File


class Journal:
    """The pieces that are done, of one source. A context manager: while it is open, no other fetch writes here.

    `files` is the folder that the files are written into. What a fetch of another source, or of files that have
    changed since, had copied there is thrown away.
    """

    def __init__(self, folder: Path, source: str, files: Sequence[File]) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder, self.files = folder, folder / "files"
        self._lock = self._locked()
        self._path = folder / "done"
        head = {"source": source, "files": [[each.path, each.bytes, each.modified_at] for each in files]}
        lines = self._lines()
        goes_on = bool(lines) and lines[0] == json.loads(json.dumps(head))
        self.done = {(line[0], line[1]) for line in lines[1:] if isinstance(line, list)} if goes_on else set()
        if not goes_on:
            with contextlib.suppress(FileNotFoundError):
                shutil.rmtree(self.files)
        self.files.mkdir(exist_ok=True)
        self._file = self._written([head, *([path, offset] for path, offset in sorted(self.done))])

    def __enter__(self) -> "Journal":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        os.close(self._lock)

    def note(self, piece: Piece) -> None:
        """The piece is written; its bytes were flushed before."""
        self.done.add((piece.path, piece.offset))
        self._file.write(json.dumps([piece.path, piece.offset]) + "\n")
        self._file.flush()

    def forget(self, paths: Sequence[str]) -> None:
        """What is there of these files is wrong: it is thrown away, and the next fetch copies them anew."""
        self.done = {each for each in self.done if each[0] not in paths}
        head = self._lines()[0]
        self._file.close()
        self._file = self._written([head, *([path, offset] for path, offset in sorted(self.done))])
        for path in paths:
            (self.files / path).unlink(missing_ok=True)

    def remove(self) -> None:
        """After the files have got their own name."""
        shutil.rmtree(self._folder)

    def _locked(self) -> int:
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            raise Conflict(
                f"{self._folder} is being written by another fetch. Wait for it, or name another folder.", code="busy"
            ) from None
        return lock

    def _written(self, lines: Sequence[Any]) -> TextIO:
        """The journal with these lines, whole or as it was; open for more."""
        fresh = self._path.with_name("done.new")
        with fresh.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
        os.replace(fresh, self._path)
        return self._path.open("a", encoding="utf-8")

    def _lines(self) -> list[Any]:
        """Up to the first that was cut off when its writer was killed."""
        found: list[Any] = []
        with contextlib.suppress(FileNotFoundError, ValueError), self._path.open(encoding="utf-8") as file:
            for line in file:
                found.append(json.loads(line))
        return found
