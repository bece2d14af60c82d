"""Megatron's older backend: a folder for each tensor, with `.zarray` and one file a chunk (zarr, version 2).

What is not a tensor is a file a rank, `<key>/shard_0.1_2.4.pt`. Chunks are not compressed by Megatron; where they
are not, each has the same size.
"""

import json
import math
import re
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from cairn.formats.checkpoints.dcp_metadata import DcpMetadata, StoredTensor
from cairn.formats.checkpoints.shapes import Problem, path_text
from cairn.formats.checkpoints.source import Listing

ARRAY = ".zarray"
_OBJECT = re.compile(r"(?P<key>.+)/(?P<shard>shard_[\d.]+_[\d.]+)\.pt")
_DTYPE = re.compile(r"[<>|](?P<kind>[fiubc])(?P<bytes>\d{1,2})")
_MAX_ARRAY_BYTES = 64 * 1024
_MAX_CHUNKS = 1_000_000


@dataclass
class ZarrShards:
    metadata: DcpMetadata = field(default_factory=DcpMetadata)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_zarr(listing: Listing) -> ZarrShards:
    """Every tensor and object, and which chunks are not there or too short."""
    found = ZarrShards()
    arrays = [path for path in listing if path.endswith(f"/{ARRAY}") and listing.size(path) <= _MAX_ARRAY_BYTES]
    answers = listing.exact_many([(path, 0, listing.size(path)) for path in arrays])
    for path, data in zip(arrays, answers, strict=True):
        try:
            if not isinstance(data, bytes):
                raise data
            _add_array(listing, path.removesuffix(f"/{ARRAY}"), _Array.of(json.loads(data)), found)
        except (ValueError, TypeError, KeyError, RecursionError) as fault:
            found.problems.append(Problem(path, f"cannot be read: {type(fault).__name__}"))
    for path in listing:
        if match := _OBJECT.fullmatch(path):
            found.metadata.objects[f"{match['key']}/{match['shard']}"] = None
    return found


@dataclass(frozen=True)
class _Array:
    dtype: str
    bytes: int | None
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    separator: str
    compressed: bool

    @classmethod
    def of(cls, said: Any) -> "_Array":
        """Raises ValueError, TypeError, KeyError for what is no array of zarr 2."""
        shape, chunks = tuple(said["shape"]), tuple(said["chunks"])
        whole = all(type(each) is int and 0 <= each < 2**62 for each in (*shape, *chunks))
        if said["zarr_format"] != 2 or not whole or len(shape) != len(chunks) or 0 in chunks or len(shape) > 64:
            raise ValueError
        dtype, width = _dtype(said["dtype"])
        packed = said.get("compressor") is not None or bool(said.get("filters"))
        return cls(dtype, width, shape, chunks, "/" if said.get("dimension_separator") == "/" else ".", packed)

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(-(-size // chunk) for size, chunk in zip(self.shape, self.chunks, strict=True))


def _dtype(said: Any) -> tuple[str, int | None]:
    """`<f4` is f32, 4 bytes; Megatron's bfloat16 stands as its own word."""
    if not isinstance(said, str):
        raise TypeError
    if found := _DTYPE.fullmatch(said):
        return f"{found['kind']}{8 * int(found['bytes'])}".replace("b8", "bool"), int(found["bytes"])
    return ("bf16", 2) if said == "bfloat16" else (path_text(said[:20]), None)


def _add_array(listing: Listing, key: str, array: _Array, found: ZarrShards) -> None:
    count = math.prod(array.grid)
    if count > _MAX_CHUNKS:
        found.problems.append(
            Problem(f"{key}/{ARRAY}", f"promises {count:,} chunks; at most {_MAX_CHUNKS:,} are looked for")
        )
        return
    whole = math.prod(array.shape)
    found.metadata.tensors[key] = StoredTensor(array.dtype, array.shape, count, whole, array.grid)
    size = math.prod(array.chunks) * (array.bytes or 0)
    missing = []
    for place in product(*(range(each) for each in array.grid)):
        path = f"{key}/{array.separator.join(map(str, place)) or '0'}"
        if path not in listing:
            missing.append(path)
        elif size and not array.compressed and listing.size(path) < size:
            told = f"was cut short: it has {listing.size(path):,} bytes and must hold {size:,}"
            found.problems.append(Problem(path, told))
    found.missing.extend(islice(missing, 1000))
    if len(missing) > 1000:
        found.problems.append(Problem(key, f"{len(missing):,} chunks are not there"))
