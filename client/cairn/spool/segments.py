"""The files of one spool folder, read in order while another process may still append to the newest."""

import os
from collections.abc import Iterator
from pathlib import Path

from cairn.pace import rest
from cairn.spool.files import segment_name
from cairn.spool.frames import Framed, read_frames

CHUNK_BYTES = 1024 * 1024


class Segments:
    """A reading of the folder's records. `number` is the file in which it stands."""

    def __init__(self, folder: Path) -> None:
        self.number = 0
        self._folder = folder
        self._offset = 0

    def numbers(self) -> list[int]:
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.startswith("records-"))
        except OSError:
            return []
        return [int(name[8:-4]) for name in names if name[8:-4].isdigit()]

    def all(self) -> Iterator[Framed]:
        """Every record that is still in the files, wherever the reading stands."""
        for number in self.numbers():
            try:
                content = (self._folder / segment_name(number)).read_bytes()
            except OSError:
                continue
            for each in read_frames(content):
                rest()
                yield each

    def rewind(self) -> None:
        self.number, self._offset = 0, 0

    def read_on(self) -> list[Framed] | None:
        """Some more records, all of the file `number`; None where there are no more just now."""
        there = self.numbers()
        if not there:
            return None
        if self.number not in there:
            later = [number for number in there if number > self.number]
            if not later:
                return None
            self.number, self._offset = later[0], 0
        # Asked before reading: once a newer file has content, nothing more is appended to this one.
        newer = [number for number in there if number > self.number]
        is_finished = any(self._size(number) for number in newer)
        content = self._whole_lines()
        if content:
            self._offset += len(content)
            found = []
            for each in read_frames(content):
                rest()
                found.append(each)
            return found
        if not is_finished:
            return None
        self.number, self._offset = newer[0], 0
        return []

    def remove(self, number: int) -> None:
        (self._folder / segment_name(number)).unlink(missing_ok=True)

    def _whole_lines(self) -> bytes:
        """From where the last reading ended; a line that is longer than a chunk is read in one."""
        try:
            with open(self._folder / segment_name(self.number), "rb") as file:
                file.seek(self._offset)
                content = file.read(CHUNK_BYTES)
                while content and b"\n" not in content and (more := file.read(CHUNK_BYTES)):
                    content += more
        except OSError:
            return b""
        return content[: content.rfind(b"\n") + 1]

    def _size(self, number: int) -> int:
        try:
            return (self._folder / segment_name(number)).stat().st_size
        except OSError:
            return 0
