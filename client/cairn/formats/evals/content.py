"""What kind of content a file has: JSON, lines of JSON, text or an archive. Asked before any format is.

Two kinds are read in pieces from a file of any size: of an archive its directory and one member, of JSON lines one
line after the other. Everything else has a limit, and a larger file is refused without reading it.
"""

import io
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from cairn.formats import jsonfile
from cairn.formats.jsonfile import MAX_BYTES
from cairn.formats.refusals import Refused

ZIP_SIGNS = (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08")
# What people hand over by mistake, by its first bytes.
FOREIGN = {
    b"PAR1": "a Parquet file (lighteval keeps its details so); give the results JSON",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed with zstd; unpack it first",
    b"\x80\x02": "a pickle, which is never opened here",
    b"\x80\x04": "a pickle, which is never opened here",
    b"SQLite format 3": "an SQLite database",
}


@dataclass(frozen=True)
class Content:
    """`kind` is json, jsonl, text or zip; `value` is what the formats of that kind are given."""

    kind: str
    value: Any
    text: str = ""


class Lines:
    """The objects of JSON lines, with their numbers; `first` is the first of them.

    A line that is no object refuses the whole file while it is read: it may be cut short, or still be written.
    """

    def __init__(self, lines: Callable[[], Iterable[str]]) -> None:
        self._lines = lines
        self.first = next(iter(self))[1]

    def __iter__(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(self._lines(), 1):
            if not line.strip():
                continue
            try:
                value = jsonfile.loads(line)
            except json.JSONDecodeError as fault:
                raise Refused(f"Line {number} is no JSON: {fault.msg} at column {fault.colno}.") from None
            if not isinstance(value, dict):
                raise Refused(f"Line {number} is no JSON object.")
            yield number, value


def open_content(data: bytes) -> Content:
    """Raises `Refused` where the content cannot be read at all."""
    if data.startswith(ZIP_SIGNS):
        return Content("zip", io.BytesIO(data))
    _refuse_foreign(data)
    jsonfile.check_size(data)
    text = jsonfile.decode(data)
    del data  # one emoji makes the text four times as large as its bytes: where nobody else needs them, let them go
    try:
        return Content("json", jsonfile.loads(text), text)
    except json.JSONDecodeError as fault:
        start = text[:4096].lstrip()[:1]
        if start == "{" and fault.msg == "Extra data":
            return Content("jsonl", Lines(lambda: text.split("\n")))
        if start in ("", "{", "["):
            place = f"line {fault.lineno}, column {fault.colno}"
            raise Refused(f"{jsonfile.NO_JSON}{fault.msg} at {place}.") from None
        if "\0" in text:
            raise Refused("The file is no text: it contains a NUL character.") from None
        return Content("text", text)


def open_file(file: BinaryIO) -> Content:
    """The content of an open regular file, which must stay open while it is used. Raises `Refused`, `OSError`."""
    size = _size_of(file)
    start = file.read(16)
    if start.startswith(ZIP_SIGNS):
        return Content("zip", file)
    if size > MAX_BYTES:
        _refuse_foreign(start)
        return _large(file, size)
    file.seek(0)
    return open_content(_read_whole(file, size))


def read_small(file: BinaryIO) -> bytes:
    """All of an open regular file. Raises `Refused` for one that is too large, or is none."""
    size = _size_of(file)
    if size > MAX_BYTES:
        raise Refused(f"The file has {size:,} bytes; a result file has at most {MAX_BYTES:,}.")
    return _read_whole(file, size)


def _size_of(file: BinaryIO) -> int:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise Refused("It is no regular file.")
    return found.st_size


def _read_whole(file: BinaryIO, size: int) -> bytes:
    data = file.read(MAX_BYTES + 1)  # it may have grown since
    if len(data) < size:
        raise Refused("The file shrank while it was read.")
    return data


def open_for_reading(path: str | os.PathLike[str]) -> BinaryIO:
    return open(path, "rb", opener=_without_waiting)


def _without_waiting(path: str, flags: int) -> int:
    """A pipe without a writer would be waited for, for ever."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))


def _refuse_foreign(data: bytes) -> None:
    for sign, what in FOREIGN.items():
        if data.startswith(sign):
            raise Refused(f"The file is {what}.")


def _large(file: BinaryIO, size: int) -> Content:
    """Lines of JSON, if the first one is one; no more of the file is read to find that out."""

    def lines() -> Iterator[str]:
        file.seek(0)
        while line := file.readline(MAX_BYTES):
            jsonfile.check_size(line)
            yield jsonfile.decode(line)

    file.seek(0)
    first = file.readline(MAX_BYTES)
    if first.lstrip().startswith(b"{") and first.rstrip().endswith(b"}") and len(first) < MAX_BYTES:
        return Content("jsonl", Lines(lines))
    raise Refused(f"The file has {size:,} bytes; a result file has at most {MAX_BYTES:,}.")
