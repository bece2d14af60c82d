"""GGUF files of llama.cpp: key and value pairs, then a table of tensors, then their numbers.

Format: the description in ggml's repository, versions 1 to 3. Only the tables are read; an array (a vocabulary) is
passed over. Either order of bytes.
"""

import math
import struct
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints.shapes import Inspection, Pieces, Tensor, Unreadable, absent
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.steps import claims_of_place, decide_step
from cairn.formats.checkpoints.weights import Weights, expected_shards

NAME = "gguf"
LOOKS_FOR = "*.gguf that begins with GGUF"
MAGIC = b"GGUF"
MAX_TABLES = 64 * 1024 * 1024
MAX_PAIRS, MAX_TENSOR_COUNT = 100_000, 200_000
_CHUNK = 256 * 1024
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# ggml's types: name, numbers in a block, bytes of a block.
_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("f32", 1, 4),
    1: ("f16", 1, 2),
    2: ("q4_0", 32, 18),
    3: ("q4_1", 32, 20),
    6: ("q5_0", 32, 22),
    7: ("q5_1", 32, 24),
    8: ("q8_0", 32, 34),
    9: ("q8_1", 32, 36),
    10: ("q2_k", 256, 84),
    11: ("q3_k", 256, 110),
    12: ("q4_k", 256, 144),
    13: ("q5_k", 256, 176),
    14: ("q6_k", 256, 210),
    15: ("q8_k", 256, 292),
    16: ("iq2_xxs", 256, 66),
    17: ("iq2_xs", 256, 74),
    18: ("iq3_xxs", 256, 98),
    19: ("iq1_s", 256, 50),
    20: ("iq4_nl", 32, 18),
    21: ("iq3_s", 256, 110),
    22: ("iq2_s", 256, 82),
    23: ("iq4_xs", 256, 136),
    24: ("i8", 1, 1),
    25: ("i16", 1, 2),
    26: ("i32", 1, 4),
    27: ("i64", 1, 8),
    28: ("f64", 1, 8),
    29: ("iq1_m", 256, 56),
    30: ("bf16", 1, 2),
    34: ("tq1_0", 256, 54),
    35: ("tq2_0", 256, 66),
    39: ("mxfp4", 32, 17),
}
_SHOWN = ("general.architecture", "general.name", "general.quantization_version", "general.file_type", "split.count")


def matches(listing: Listing) -> bool:
    return any(listing.begins(path, MAGIC) for path in _candidates(listing)[:4])


def _candidates(listing: Listing) -> list[str]:
    top = listing.top()
    return top if len(listing.files) == 1 else [path for path in top if path.endswith(".gguf")]


def read(listing: Listing) -> Inspection:
    paths = _candidates(listing)
    if not expected_shards(paths):
        paths = sorted(paths, key=lambda path: -listing.size(path))[:1]  # one model; others are variants of it
    found = Weights(files=paths)
    found.lacks(path for path in expected_shards(paths) if path not in listing)
    facts: dict[str, Any] = {}
    version = None
    for path in paths:
        try:
            table = _Table.read(listing, path)
        except Unreadable as fault:
            found.fault(path, str(fault))
            continue
        version = version or table.version
        facts |= {key: value for key, value in table.pairs.items() if key in _SHOWN}
        found.read += 1
        for tensor in table.tensors:
            found.add(tensor)
        if table.end > listing.size(path):
            found.fault(path, f"was cut short: it has {listing.size(path):,} of {table.end:,} bytes")
    others = [path for path in _candidates(listing) if path not in paths]
    step = decide_step(claims_of_place(listing.root))
    nothing = absent("the format holds weights alone")
    return Inspection(
        format=NAME,
        format_version=str(version) if version else None,
        root=listing.root,
        step=step.step,
        step_source=step.source,
        disagreements=step.disagreements,
        pieces=Pieces(found.finding, nothing, nothing, nothing),
        **found.numbers(),
        bytes=listing.total_bytes,
        files=len(listing.files),
        complete=found.sound,
        missing=tuple(found.missing),
        problems=tuple(found.problems),
        facts={**facts, "other_files": others} if others else facts,
    )


@dataclass
class _Table:
    """What stands before the numbers; `end` is where the last tensor ends."""

    version: int
    pairs: dict[str, Any] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    end: int = 0

    @classmethod
    def read(cls, listing: Listing, path: str) -> "_Table":
        cursor = _Cursor(listing, path)
        if cursor.take(4) != MAGIC:
            raise Unreadable("does not begin with GGUF")
        version = cursor.number("I")
        if not 1 <= version <= 3:
            cursor.order, version = ">", int.from_bytes(version.to_bytes(4, "little"), "big")
        if not 1 <= version <= 3:
            raise Unreadable(f"is of version {version}; 1 to 3 are read")
        cursor.wide = "I" if version == 1 else "Q"
        tensors, pairs = cursor.number(cursor.wide), cursor.number(cursor.wide)
        if tensors > MAX_TENSOR_COUNT or pairs > MAX_PAIRS:
            raise Unreadable(f"announces {tensors:,} tensors and {pairs:,} values, more than are read")
        table = cls(version)
        for _ in range(pairs):
            key = cursor.text()
            table.pairs[key] = cursor.value(cursor.number("I"))
        table._take_tensors(cursor, tensors, path)
        return table

    def _take_tensors(self, cursor: "_Cursor", count: int, path: str) -> None:
        last = 0
        for _ in range(count):
            name = cursor.text()
            dimensions = cursor.number("I")
            if dimensions > 8:
                raise Unreadable(f"gives {name[:100]} {dimensions} dimensions")
            shape = tuple(cursor.number(cursor.wide) for _ in range(dimensions))
            kind, offset = cursor.number("I"), cursor.number("Q")
            dtype, block, width = _TYPES.get(kind, (f"ggml_{kind}", 1, 0))
            # The first dimension is the innermost one: turned round, as every other format writes it.
            self.tensors.append(Tensor(name, dtype, shape[::-1], path))
            last = max(last, offset + math.prod(shape) // block * width)
        alignment = self.pairs.get("general.alignment", 32)
        alignment = alignment if isinstance(alignment, int) and 0 < alignment <= 2**20 else 32
        self.end = -(-cursor.at // alignment) * alignment + last if count else cursor.at


class _Cursor:
    """Reads on through the tables, a chunk at a time, never more than `MAX_TABLES` in all."""

    def __init__(self, listing: Listing, path: str) -> None:
        self._listing, self._path, self.at, self.order, self.wide = listing, path, 0, "<", "Q"
        self._chunk, self._from, self._fetched = b"", 0, 0

    def take(self, length: int) -> bytes:
        begin = self.at - self._from
        if not 0 <= begin <= len(self._chunk) - length:
            self._fetch(length)
            begin = 0
        self.at += length
        return self._chunk[begin : begin + length]

    def _fetch(self, length: int) -> None:
        size = self._listing.size(self._path)
        if self.at + length > size:
            raise Unreadable(f"ends inside its tables, at byte {size:,}: it was cut short")
        wanted = min(max(length, _CHUNK), size - self.at)
        self._fetched += wanted
        if self._fetched > MAX_TABLES:
            raise Unreadable(f"has tables of more than {MAX_TABLES:,} bytes, which are not read")
        self._chunk, self._from = self._listing.exact(self._path, self.at, wanted), self.at

    def skip(self, length: int) -> None:
        self.at += length

    def number(self, letter: str) -> Any:
        format = struct.Struct(self.order + letter)
        return format.unpack(self.take(format.size))[0]

    def length(self) -> int:
        length: int = self.number(self.wide)
        if length > self._listing.size(self._path):
            raise Unreadable(f"announces a text or list of {length:,}, more than the file has bytes")
        return length

    def text(self) -> str:
        length = self.length()
        if length > 1024 * 1024:
            self.skip(length)
            return ""
        return self.take(length).decode("utf-8", "replace")

    def value(self, kind: int) -> Any:
        """A single value; None for an array, which is passed over."""
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            raise Unreadable(f"holds a value of the unknown type {kind}")
        inner = self.number("I")
        count = self.length()
        if inner in _SCALARS:
            self.skip(count * struct.calcsize(self.order + _SCALARS[inner]))
        elif inner == _STRING:
            for _ in range(count):
                self.skip(self.length())
        else:
            raise Unreadable(f"holds a list of the unknown type {inner}")
        return None
