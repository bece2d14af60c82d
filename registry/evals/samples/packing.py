"""Item keys and values as compact bytes, and back."""

import zlib
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]  # sorted, each once
Values = NDArray[np.float64]  # in the order of the keys


def key_of(item: str) -> int:
    """64 bits of an item's hashes: two of 14,000 items meet in one of 10^11 such sets."""
    return int.from_bytes(blake2b(item.encode("utf-8", "replace"), digest_size=8).digest(), "little")


def arrange(samples: Iterable[tuple[str, float]]) -> tuple[Keys, Values]:
    """Keys and values in order of key; an item that stands several times counts with its mean."""
    pairs = list(samples)
    keys = np.fromiter((key_of(item) for item, _ in pairs), np.uint64, len(pairs))
    values = np.fromiter((value for _, value in pairs), np.float64, len(pairs))
    unique, place, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return unique, np.bincount(place, weights=values, minlength=len(unique)) / counts


def pack_keys(keys: Keys) -> bytes:
    return zlib.compress(keys.astype("<u8").tobytes(), 1)


def unpack_keys(body: bytes) -> Keys:
    return np.frombuffer(zlib.decompress(body), "<u8")


def pack_values(values: Values) -> tuple[str, bytes]:
    """(encoding, bytes): one bit each where all are 0 or 1, else whole floats."""
    if bool(np.all((values == 0.0) | (values == 1.0))):
        return "bits", zlib.compress(np.packbits(values == 1.0).tobytes(), 6)
    return "float64", zlib.compress(values.astype("<f8").tobytes(), 6)


def unpack_values(encoding: str, body: bytes, count: int) -> Values:
    raw = zlib.decompress(body)
    if encoding == "bits":
        return np.unpackbits(np.frombuffer(raw, np.uint8), count=count).astype(np.float64)
    return np.frombuffer(raw, "<f8")
