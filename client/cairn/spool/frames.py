"""How a record stands in a file: one line, `checksum number JSON`, so that what a crash cut short is told apart.

    1c2f88d0 17 {"kind":"saved","key":"...","step":1000}

The checksum (CRC-32) is over all that follows it. A line without its end, or whose checksum differs, was never
acknowledged: a reader passes over it.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cairn.pace import rest


@dataclass(frozen=True)
class Framed:
    """A record as it was read: its number in the spool, its content, and where its line ends in the file."""

    number: int
    record: dict[str, Any]
    end: int


_json = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


def payload(record: Mapping[str, Any]) -> bytes:
    """The record as JSON. Raises ValueError or TypeError for what `cairn.recorder.plain` has not made plain."""
    return _json(record).encode("ascii")


def frame(number: int, body: bytes) -> bytes:
    """The whole line. `body` is the JSON of a record, without line breaks."""
    text = b"%d %s" % (number, body)
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_frames(content: bytes, start: int = 0) -> Iterator[Framed]:
    """The whole and sound records from an offset on. A last line without its end is left for the next reading."""
    at = start
    while (end := content.find(b"\n", at)) >= 0:
        found = _read(content[at:end], end + 1)
        if found is not None:
            yield found
        at = end + 1


def unsound_lines(content: bytes) -> int:
    """How many lines that have their end cannot be read: not cut short, but changed afterwards."""
    count = 0
    for line in content.split(b"\n")[:-1]:
        rest()
        count += line != b"" and _read(line, 0) is None
    return count


def _read(line: bytes, end: int) -> Framed | None:
    checksum, _, text = line.partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(text):
            return None
        number, _, body = text.partition(b" ")
        record = json.loads(body)
        return Framed(int(number), record, end) if isinstance(record, dict) else None
    except (ValueError, RecursionError):
        return None
