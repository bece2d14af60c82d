"""The few whole numbers of a checkpoint that are kept as tensors or entries of their own: steps, tokens seen, the
loader's degree.

Each is some hundred bytes of `torch.save`: only entries of that size are read, by their place, and nothing of a
tensor that holds more than one number.
"""

import io
import re
import zipfile
from collections.abc import Mapping
from typing import Any

from cairn.formats.checkpoints import pickles, torch_files
from cairn.formats.checkpoints.dtypes import bytes_of
from cairn.formats.checkpoints.shapes import Unreadable
from cairn.formats.checkpoints.source import Listing

_WANTED = re.compile(
    r"(?!optim)(\w+\.){0,2}(global_step|iteration|ntokens_seen|tokens_seen|consumed_(train_)?samples|epoch)"
    r"|(train_state|trainer|progress|app)\.(\w+\.)?step|step|(train_)?data_?loader\.world_size"
)
_MOST_BYTES = 16 * 1024
_MOST_COUNTERS = 32
_SIGNED = {"i8": True, "i16": True, "i32": True, "i64": True, "u8": False}


def wanted(name: str) -> bool:
    """Whether a key of a distributed checkpoint is one of these numbers."""
    return _WANTED.fullmatch(name) is not None


def read_counters(listing: Listing, places: Mapping[str, tuple[str, int, int]]) -> dict[str, int]:
    """The numbers at some places (file, offset, length), by name; what is no whole number is left out."""
    small = {
        name: place
        for name, place in list(places.items())[:_MOST_COUNTERS]
        if place[0] in listing and 0 < place[2] <= _MOST_BYTES
    }
    answers = listing.exact_many(list(small.values()))
    read = {name: _only_number(data) for name, data in zip(small, answers, strict=True) if isinstance(data, bytes)}
    return {name: value for name, value in read.items() if value is not None}


def numbers_of_file(listing: Listing, path: str) -> dict[str, int]:
    """The whole numbers of a small file that holds a dictionary of them. Raises `Unreadable`."""
    try:
        with zipfile.ZipFile(io.BytesIO(listing.all_of(path, _MOST_BYTES * 4))) as archive:
            said = _Saved(archive)
            values = said.value if isinstance(said.value, dict) else {}
            read = {name: said.number(value) for name, value in values.items() if isinstance(name, str)}
    except (zipfile.BadZipFile, KeyError, ValueError) as fault:
        raise Unreadable(f"cannot be read: {fault}") from None
    return {name: value for name, value in read.items() if value is not None}


def _only_number(data: bytes) -> int | None:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            said = _Saved(archive)
            return said.number(said.value)
    except (zipfile.BadZipFile, KeyError, ValueError):
        return None


class _Saved:
    """A small zip of `torch.save`. Raises `Unreadable` (a ValueError), KeyError."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._entries = {each.filename: each for each in archive.infolist()}
        where = next((name for name in self._entries if name == "data.pkl" or name.endswith("/data.pkl")), None)
        if where is None:
            raise Unreadable("holds no data.pkl")
        self._folder = where.removesuffix("data.pkl")
        self.value = pickles.load(self._member("data.pkl", _MOST_BYTES)).value

    def number(self, value: Any) -> int | None:
        """A whole number, or the one number of a tensor; None for all else."""
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        stored = torch_files.stored_of(value) if isinstance(value, pickles.Record) else None
        if stored is None or stored.shape not in ((), (1,)) or stored.dtype not in _SIGNED:
            return None
        width = bytes_of(stored.dtype) or 0
        start = stored.offset * width
        data = self._member(f"data/{stored.key}", 256)[start : start + width]
        if len(data) != width:
            return None
        big = f"{self._folder}byteorder" in self._entries and self._member("byteorder", 16) == b"big"
        return int.from_bytes(data, "big" if big else "little", signed=_SIGNED[stored.dtype])

    def _member(self, name: str, limit: int) -> bytes:
        return torch_files.member(self._archive, self._entries[self._folder + name], limit)
