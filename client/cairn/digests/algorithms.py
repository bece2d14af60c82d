"""The algorithms: what computes each, and how its value is written."""

import base64
import binascii
import contextlib
import hashlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Protocol

from cairn.errors import BadSettings

DEFAULT = "blake3"


class LibraryMissing(BadSettings):
    """The algorithm is known, but what computes it is not installed."""


class Hasher(Protocol):
    def update(self, data: Any, /) -> Any: ...

    def hexdigest(self) -> str: ...


class _Crc32c:
    def __init__(self, update: Callable[[int, bytes], int]) -> None:
        self._value, self._update = 0, update

    def update(self, data: Any, /) -> None:
        self._value = self._update(self._value, bytes(data))

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


_LIBRARIES = {"blake3": "blake3", "xxh3-128": "xxhash", "crc32c": "google_crc32c"}
_LENGTHS = {"blake3": 32, "sha256": 32, "xxh3-128": 16, "crc32c": 4}
ALGORITHMS = tuple(_LENGTHS)


def hasher(algorithm: str = DEFAULT, *, threads: int = 1) -> Hasher:
    """A fresh hasher. Raises `LibraryMissing`; ValueError for an algorithm that is not one of ALGORITHMS."""
    if algorithm not in _LENGTHS:
        raise ValueError(f"Unknown digest algorithm {algorithm[:40]!r}. Known: {', '.join(ALGORITHMS)}.")
    if algorithm == "sha256":
        return hashlib.sha256()
    library = _library(algorithm)
    if algorithm == "crc32c":
        return _Crc32c(library.extend)
    made: Hasher = library.xxh3_128() if algorithm == "xxh3-128" else library.blake3(max_threads=threads)
    return made


@cache
def _library(algorithm: str) -> Any:
    try:
        return import_module(_LIBRARIES[algorithm])
    except ImportError:
        raise LibraryMissing(
            f"{algorithm} needs {_LIBRARIES[algorithm]}. Install it with: pip install 'cairn-client[digests]'"
        ) from None


def same_digest(algorithm: str, one: str, other: str) -> bool:
    """Whether two texts say the same digest, each in hexadecimal or base64 (as object stores write CRC32C)."""
    return _bytes_of(algorithm, one) == _bytes_of(algorithm, other)


def _bytes_of(algorithm: str, text: str) -> bytes:
    """Raises ValueError for what is no digest of that algorithm."""
    text = text.strip().rpartition(":")[2]
    length = _LENGTHS[algorithm]
    value = _from_hexadecimal(text) if len(text) == 2 * length else b""
    if not value:  # CRC32C has eight letters either way
        with contextlib.suppress(ValueError, binascii.Error):
            value = base64.b64decode(text, validate=True)
    if len(value) != length:
        raise ValueError(f"{text[:80]!r} is no {algorithm} digest: expected {2 * length} hexadecimal digits or base64.")
    return value


def _from_hexadecimal(text: str) -> bytes:
    """Nothing for what is not hexadecimal."""
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
