"""Pickles put together by hand, so that tests without torch have the metadata of any distributed checkpoint."""

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

METADATA = "torch.distributed.checkpoint.metadata"
FILESYSTEM = "torch.distributed.checkpoint.filesystem"


@dataclass
class Named:
    """A global."""

    module: str
    name: str


@dataclass
class Call:
    """`of(*args)` by REDUCE."""

    of: Named
    args: tuple[Any, ...]


@dataclass
class Made:
    """An object of a class, with a state."""

    of: Named
    state: Any = field(default_factory=dict)


@dataclass
class Pairs:
    """A dictionary whose keys may be anything."""

    items: Sequence[tuple[Any, Any]]


def pickled(value: Any) -> bytes:
    return b"\x80\x02" + _of(value) + b"."


def _of(value: Any) -> bytes:
    if isinstance(value, bool) or value is None:
        return {None: b"N", True: b"\x88", False: b"\x89"}[value]
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value) if -(2**31) <= value < 2**31 else _long(value)
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        return b"X" + struct.pack("<I", len(data)) + data
    if isinstance(value, tuple):
        return b"(" + b"".join(map(_of, value)) + b"t"
    if isinstance(value, list):
        return b"](" + b"".join(map(_of, value)) + b"e"
    if isinstance(value, dict):
        return _of(Pairs(list(value.items())))
    if isinstance(value, Pairs):
        return b"}(" + b"".join(_of(key) + _of(each) for key, each in value.items) + b"u"
    if isinstance(value, Named):
        return f"c{value.module}\n{value.name}\n".encode()
    if isinstance(value, Call):
        return _of(value.of) + _of(value.args) + b"R"
    assert isinstance(value, Made)
    return _of(value.of) + b")\x81" + _of(value.state) + b"b"


def _long(value: int) -> bytes:
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data


def size(*sizes: int) -> Call:
    return Call(Named("torch", "Size"), (tuple(sizes),))


def chunk(offsets: Sequence[int], sizes: Sequence[int]) -> Made:
    return Made(Named(METADATA, "ChunkStorageMetadata"), {"offsets": size(*offsets), "sizes": size(*sizes)})


def tensor(shape: Sequence[int], chunks: Sequence[Made], dtype: str = "bfloat16") -> Made:
    layout = Call(Named("torch.serialization", "_get_layout"), ("torch.strided",))
    memory = Call(Named(METADATA, "_MEM_FORMAT_ENCODING"), (0,))
    state = (Named("torch", dtype), layout, False, memory, False)
    properties = Made(Named(METADATA, "TensorProperties"), state)
    said = {"properties": properties, "size": size(*shape), "chunks": list(chunks)}
    return Made(Named(METADATA, "TensorStorageMetadata"), said)


def entry(fqn: str, offset: Sequence[int] | None, path: str, start: int, length: int) -> tuple[Made, Made]:
    index = {"fqn": fqn, "offset": None if offset is None else size(*offset), "index": None}
    place = {"relative_path": path, "offset": start, "length": length}
    return Made(Named(METADATA, "MetadataIndex"), index), Made(Named(FILESYSTEM, "_StorageInfo"), place)


def metadata(tensors: Mapping[str, Made], entries: Sequence[tuple[Made, Made]], **more: Any) -> bytes:
    state = {"state_dict_metadata": dict(tensors), "planner_data": None, "storage_data": Pairs(entries), **more}
    return pickled(Made(Named(METADATA, "Metadata"), state))


def sharded(fqns: Sequence[str], ranks: int, rows: int = 16) -> bytes:
    """Tensors of two dimensions, each cut over all ranks; a part takes 4,096 bytes of its rank's file."""
    tensors, entries = {}, []
    for number, fqn in enumerate(fqns):
        parts = [chunk((rank * rows, 0), (rows, 8)) for rank in range(ranks)]
        tensors[fqn] = tensor((rows * ranks, 8), parts)
        entries += [entry(fqn, (r * rows, 0), f"__{r}_0.distcp", 4096 * number, 4096) for r in range(ranks)]
    return metadata(tensors, entries)
