"""The framing of W&B's files: a header of 7 bytes, then blocks of 32 KiB as in the log of LevelDB.

A record lies in one chunk, or in several where it does not fit into the rest of a block. Each chunk has its own
checksum (CRC-32 over its type and data), so that damage costs only the records that it touches. What is not whole
at the end of the file is no damage but a record that is still being written: the same place is read again later.
"""

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

MAGIC, VERSION = b":W&B\xe1\xbe", 0
HEADER_BYTES = len(MAGIC) + 1
BLOCK_BYTES = 32 * 1024
MAX_RECORD_BYTES = 64 * 1024 * 1024
# Looking for the next whole chunk after damage reads the rest of its block many times over; then only the next
# block is tried.
MAX_SEARCHES = 64
_READ_BYTES = 32 * BLOCK_BYTES
_CHUNK = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_TYPES = range(_FULL, _LAST + 1)


@dataclass(frozen=True)
class Frame:
    """The bytes of one record. `end`: where the next one begins, a place to read on from."""

    data: bytes
    end: int


@dataclass
class Damage:
    """What was lost: places (`places` holds the first of them) and their bytes; records too long to be read."""

    count: int = 0
    bytes: int = 0
    too_long: int = 0
    places: list[int] = field(default_factory=list)

    def add(self, place: int, size: int) -> None:
        self.count += 1
        self.bytes += size
        if len(self.places) < 20:
            self.places.append(place)


class Frames:
    """The records of a file from `offset` on, one after the other.

    `offset` is always a place to read on from, also while it is iterated; `torn` says that bytes follow it which are
    no whole record yet. Memory: one record, at most MAX_RECORD_BYTES, and a megabyte of the file.
    """

    def __init__(self, file: BinaryIO, offset: int = 0) -> None:
        self._file = file
        self.offset = offset if offset > HEADER_BYTES else HEADER_BYTES
        self.damage = Damage()
        self.torn = False
        self._base, self._buffer = 0, b""
        self._parts: list[bytes] = []
        self._parts_bytes = 0
        self._started: int | None = None  # where the record began whose chunks are being gathered
        self._searches = 0

    def __iter__(self) -> Iterator[Frame]:
        place = self.offset
        while True:
            found = self._chunk(place)
            if found is None:
                return
            place, kind, data, end = found
            record = self._gather(place, kind, data)
            place = end
            if self._started is None:
                self.offset = end
            if record is not None:
                yield Frame(record, end)

    def _chunk(self, place: int) -> tuple[int, int, bytes, int] | None:
        """(place, type, data, end) of the next whole chunk at or after `place`; None at the end of the file."""
        while True:
            within = place % BLOCK_BYTES
            if BLOCK_BYTES - within < _CHUNK.size:  # too little for a header: filled with zeros
                place += BLOCK_BYTES - within
                continue
            block = self._block(place - within)
            if len(block) <= within:
                self.torn = self._started is not None
                return None
            if (whole := _whole_chunk(block, within)) is not None:
                kind, end = whole
                return place, kind, block[within + _CHUNK.size : end], place + end - within
            after = self._search(block, within)
            if after is None and len(block) < BLOCK_BYTES:
                self.torn = True
                return None
            after = BLOCK_BYTES if after is None else after
            self._lost(place, after - within)
            place += after - within
            self.offset = place

    def _search(self, block: bytes, within: int) -> int | None:
        """Where the next whole chunk of a damaged block begins: first where the damaged one says that it ends."""
        _, size, _ = _CHUNK.unpack_from(block, within) if len(block) - within >= _CHUNK.size else (0, 0, 0)
        said = within + _CHUNK.size + size
        if said < len(block) and _whole_chunk(block, said) is not None:
            return int(said)
        self._searches += 1
        if self._searches > MAX_SEARCHES:
            return None
        places = range(within + 1, len(block) - _CHUNK.size + 1)
        return next((place for place in places if _whole_chunk(block, place) is not None), None)

    def _gather(self, place: int, kind: int, data: bytes) -> bytes | None:
        """The record that this chunk completes."""
        if kind in (_FULL, _FIRST):
            if self._started is not None:
                self._lost(self._started, self._parts_bytes)
            if kind == _FULL:
                return data
            self._started = place
        elif self._started is None:  # the rest of a record whose beginning was damaged
            self._lost(place, len(data))
            return None
        self._parts_bytes += len(data)
        if self._parts_bytes <= MAX_RECORD_BYTES:
            self._parts.append(data)
        return self._complete() if kind == _LAST else None

    def _complete(self) -> bytes | None:
        record = b"".join(self._parts) if self._parts_bytes <= MAX_RECORD_BYTES else None
        self.damage.too_long += record is None
        self._forget()
        return record

    def _lost(self, place: int, size: int) -> None:
        if self._started is not None and self._started != place:
            size += self._parts_bytes
        self.damage.add(place if self._started is None else self._started, size)
        self._forget()

    def _forget(self) -> None:
        self._parts, self._parts_bytes, self._started = [], 0, None

    def _block(self, base: int) -> bytes:
        """The block that begins at `base`; shorter than a block, or empty, at the end of the file."""
        at = base - self._base
        if not 0 <= at <= len(self._buffer) - BLOCK_BYTES:
            self._file.seek(base)
            self._base, self._buffer, at = base, self._file.read(_READ_BYTES), 0
        return self._buffer[at : at + BLOCK_BYTES]


def _whole_chunk(block: bytes, within: int) -> tuple[int, int] | None:
    """(type, end) of the chunk at this place of a block, where it is whole and its checksum is right."""
    if len(block) - within < _CHUNK.size:
        return None
    crc, size, kind = _CHUNK.unpack_from(block, within)
    start = within + _CHUNK.size
    if kind not in _TYPES or start + size > len(block):
        return None
    right = zlib.crc32(memoryview(block)[start - 1 : start + size]) == crc  # the type stands just before the data
    return (kind, start + size) if right else None


def has_header(beginning: bytes) -> bool:
    """Whether a file that begins so is one of W&B's, as far as it goes: a young file may be shorter than its header."""
    return (MAGIC + bytes([VERSION])).startswith(beginning[:HEADER_BYTES])
