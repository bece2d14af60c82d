"""The files of a spool folder that one process appends to: numbered, each of a bounded size."""

import os
from pathlib import Path

SEGMENT_BYTES = 4 * 1024 * 1024


class Gone(OSError):
    """Somebody has removed the file that is written to: what was written last is in no folder."""


class Files:
    """The newest file. The writer's lock is held around `write`, `swap` and `shut`."""

    def __init__(self) -> None:
        self.handle = -1
        self.segment = 0
        self.dirty = False
        self._written, self._torn = 0, False

    @property
    def is_open(self) -> bool:
        return self.handle >= 0

    @property
    def is_full(self) -> bool:
        return self.is_open and self._written >= SEGMENT_BYTES

    @property
    def next(self) -> int:
        """The number to go on with: that of a file which took nothing is used again, else a full disk fills a folder
        with empty files."""
        return self.segment if self.segment and not self._written else self.segment + 1

    def write(self, lines: bytes) -> None:
        """Hands the lines to the operating system in one write. Raises OSError where they are not whole in a file that
        somebody can find: then all are written again, for a record that is there twice does no harm."""
        if self._torn:  # ends what the last failed write has left, so that it spoils nothing but itself
            lines = b"\n" + lines
        done = os.write(self.handle, lines)
        self._written += done
        self.dirty = True
        self._torn = done < len(lines)
        if self._torn:
            raise OSError("the disk is full")
        if os.fstat(self.handle).st_nlink == 0:
            raise Gone("it was removed")

    def open(self, folder: Path, number: int) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        return os.open(folder / segment_name(number), flags, 0o600)

    def swap(self, handle: int, number: int) -> int:
        """Goes on in another file; the handle of the one before, or -1."""
        before, self.handle = self.handle, handle
        self.segment, self._written, self._torn, self.dirty = number, 0, False, True
        return before

    def shut(self) -> None:
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)


def segment_name(number: int) -> str:
    return f"records-{number:06d}.log"
