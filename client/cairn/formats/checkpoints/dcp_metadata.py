"""torch DCP's `.metadata`, followed without unpickling: which tensors, in which parts, in which files.

    Metadata(state_dict_metadata={fqn: TensorStorageMetadata | BytesStorageMetadata}, planner_data={...},
             storage_data={MetadataIndex(fqn, offset): _StorageInfo(relative_path, offset, length)}, ...)

Of a run on hundreds of ranks this holds hundreds of thousands of parts. They are added up as they appear, so that
memory stays bounded by the number of tensors and files. Only the records of `_KNOWN` are known; a pickle that names
anything else is refused. Shapes as in torch 1.13 to 2.13, and Megatron's and NVIDIA resiliency's heirs of them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints.dcp_keys import Kind, kind_of
from cairn.formats.checkpoints.dcp_machine import Built, follow
from cairn.formats.checkpoints.dtypes import bytes_of, short_of_torch
from cairn.formats.checkpoints.pickles import Global, PickleFault, UnsafePickle
from cairn.formats.checkpoints.shapes import path_text

# Offsets, sizes and positions beyond this are no file's; torch allows 64 dimensions.
_MOST = 2**62
_MOST_DIMENSIONS = 64


@dataclass(slots=True)
class StoredTensor:
    """One tensor: `chunks` parts that hold `held` elements together; `cuts` counts their places by dimension."""

    dtype: str
    shape: tuple[int, ...]
    chunks: int
    held: int
    cuts: tuple[int, ...]
    file: str | None = None

    @property
    def count(self) -> int:
        return math.prod(self.shape)


@dataclass(slots=True)
class FileNeed:
    """What a file must hold: `end` is the byte behind its last entry, `kinds` are those of its entries."""

    end: int = 0
    entries: int = 0
    kinds: set[Kind] = field(default_factory=set)


@dataclass
class DcpMetadata:
    """Everything that one or more `.metadata` say. `places` tells where the entries are that `wanted` asked for."""

    tensors: dict[str, StoredTensor] = field(default_factory=dict)
    objects: dict[str, None] = field(default_factory=dict)
    files: dict[str, FileNeed] = field(default_factory=dict)
    entries: dict[str, int] = field(default_factory=dict)
    places: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    transforms: set[str] = field(default_factory=set)
    version: str | None = None
    save_id: str | None = None
    has_planner_data: bool = False
    writer: str = "Metadata"

    def names(self) -> Iterator[str]:
        yield from self.tensors
        yield from self.objects

    def unstored(self) -> list[str]:
        """Names of which a part is nowhere: neither described twice nor found in any file."""
        short = [
            n for n, each in self.tensors.items() if self.entries.get(n, 0) < each.chunks or each.held < each.count
        ]
        return short + [name for name in self.objects if not self.entries.get(name)]


class Chunk(Built):
    """A part of a tensor: offsets and sizes."""

    __slots__ = ("offsets", "sizes")
    offsets: tuple[int, ...]
    sizes: tuple[int, ...]

    def build(self, state: Any) -> None:
        # ShardMetadata of older planners says shard_offsets and shard_sizes.
        self.offsets = _integers(state.get("offsets", state.get("shard_offsets")))
        self.sizes = _integers(state.get("sizes", state.get("shard_sizes")))
        if len(self.offsets) != len(self.sizes):
            raise ValueError


class Properties(Built):
    __slots__ = ("dtype",)

    def __init__(self) -> None:
        self.dtype = "unknown"

    def build(self, state: Any) -> None:
        found = state.get("dtype") if isinstance(state, dict) else state[0] if isinstance(state, tuple) else None
        if isinstance(found, Global) and found.module == "torch":
            self.dtype = short_of_torch(found.name)


class TensorEntry(Built):
    __slots__ = ("tensor",)
    tensor: StoredTensor

    def build(self, state: Any) -> None:
        chunks = state["chunks"]
        if not isinstance(chunks, list) or not all(isinstance(each, Chunk) for each in chunks):
            raise TypeError
        shape = _integers(state["size"])
        cuts = tuple(len({each.offsets[axis] for each in chunks}) for axis in range(len(shape)))
        held = sum(math.prod(each.sizes) for each in chunks)
        self.tensor = StoredTensor(state["properties"].dtype, shape, len(chunks), held, cuts)
        chunks.clear()  # so that a list which a hostile pickle names a million times is added up once


class ObjectEntry(Built):
    __slots__ = ()


class Index(Built):
    __slots__ = ("fqn",)

    def build(self, state: Any) -> None:
        self.fqn = _text(state["fqn"])


class Stored(Built):
    __slots__ = ("length", "offset", "path", "transforms")
    transforms: list[str]

    def build(self, state: Any) -> None:
        self.path, self.offset, self.length = _text(state["relative_path"]), state["offset"], state["length"]
        self.transforms = [each for each in state.get("transform_descriptors") or () if isinstance(each, str)]
        _integers((self.offset, self.length))


class Whole(Built):
    """The metadata object itself; of `planner_data` only its presence is kept."""

    __slots__ = ("state",)

    def build(self, state: Any) -> None:
        self.state = state


class Origin(Built):
    """Which save wrote this."""

    __slots__ = ("save_id",)

    def build(self, state: Any) -> None:
        found = state.get("save_id")
        self.save_id = found if isinstance(found, str) else None


class Ignored(Built):
    """Known, and of no use here: plans of the single ranks, memory formats."""

    __slots__ = ()


def _integers(values: Any) -> tuple[int, ...]:
    if not isinstance(values, (tuple, list)) or len(values) > _MOST_DIMENSIONS:
        raise TypeError
    if not all(type(each) is int and 0 <= each < _MOST for each in values):
        raise ValueError
    return tuple(values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


_CHECKPOINT = "torch.distributed.checkpoint"
_SHARD = "torch.distributed._shard"
_MCORE = "megatron.core.dist_checkpointing.strategies"
_KNOWN: dict[str, type[Built]] = {
    **dict.fromkeys((f"{_CHECKPOINT}.metadata.Metadata", f"{_MCORE}.torch.MCoreMetadata"), Whole),
    f"{_CHECKPOINT}.metadata.TensorStorageMetadata": TensorEntry,
    f"{_CHECKPOINT}.metadata.BytesStorageMetadata": ObjectEntry,
    f"{_CHECKPOINT}.metadata.ChunkStorageMetadata": Chunk,
    f"{_CHECKPOINT}.metadata.MetadataIndex": Index,
    f"{_CHECKPOINT}.metadata.StorageMeta": Origin,
    f"{_CHECKPOINT}.filesystem._StorageInfo": Stored,
    f"{_CHECKPOINT}.metadata.TensorProperties": Properties,
    f"{_SHARD}.sharded_tensor.metadata.TensorProperties": Properties,
    f"{_SHARD}.metadata.ShardMetadata": Chunk,
    **dict.fromkeys(
        (
            f"{_CHECKPOINT}.metadata._MEM_FORMAT_ENCODING",
            f"{_SHARD}.sharded_tensor.metadata.MEM_FORMAT_ENCODING",
            f"{_SHARD}.sharded_tensor.metadata.ShardedTensorMetadata",
            "torch.distributed.remote_device._remote_device",
            *(f"{_CHECKPOINT}.planner.{name}" for name in ("SavePlan", "WriteItem", "WriteItemType")),
            *(f"{_CHECKPOINT}.planner.{name}" for name in ("TensorWriteData", "BytesIOWriteData")),
            f"{_CHECKPOINT}.filesystem._StoragePrefix",
            f"{_CHECKPOINT}.storage.WriteResult",
            f"{_MCORE}.torch.MCoreSavePlan",
        ),
        Ignored,
    ),
}
# What `__reduce__` of plain values names; each is answered with a plain value, never called.
_PLAIN: dict[str, Callable[[tuple[Any, ...]], Any]] = {
    "torch.Size": lambda args: tuple(args[0]) if args else (),
    "torch.serialization._get_layout": lambda args: args[0],
    "collections.OrderedDict": lambda args: {},
    "builtins.dict": lambda args: {},
    **dict.fromkeys(
        (
            f"pathlib{part}.{kind}"
            for part in ("", "._local")
            for kind in ("PosixPath", "PurePosixPath", "WindowsPath", "PureWindowsPath", "Path")
        ),
        lambda args: "/".join(each for each in args if isinstance(each, str)),
    ),
}


def parse(data: bytes | bytearray, into: DcpMetadata, wanted: Callable[[str], bool] = lambda name: False) -> None:
    """Adds what one `.metadata` says. Raises `UnsafePickle` where it names what it has no use for, `PickleFault`
    where it is cut short or no metadata."""

    def allow(found: Global) -> None:
        name = str(found)
        if name in _KNOWN or name in _PLAIN or (found.module == "torch" and bytes_of(short_of_torch(found.name))):
            return
        said = path_text(name[:80])
        raise UnsafePickle(f"it names {said}, which DCP metadata has no use for: refused, nothing of it was run")

    def make(of: Global) -> Built | None:
        known = _KNOWN.get(str(of))
        return known() if known else None

    def plain(of: Global, args: tuple[Any, ...]) -> Any:
        return _PLAIN[str(of)](args)

    def pair(key: Any, value: Any) -> bool:
        """Takes up an entry as it appears, so that it need not be kept."""
        if isinstance(key, Index) and isinstance(value, Stored):
            _add_entry(into, key.fqn, value, wanted)
        elif isinstance(value, TensorEntry):
            _add_tensor(into.tensors, _text(key), value.tensor)
        elif isinstance(value, ObjectEntry):
            into.objects[_text(key)] = None
        else:
            return False
        return True

    found = follow(data, allow, make, plain, pair)
    if not isinstance(found, Whole) or not isinstance(getattr(found, "state", None), dict):
        raise PickleFault("the pickle is not the metadata of a checkpoint")
    state = found.state
    origin, version, said = state.get("storage_meta"), state.get("version"), state.get("planner_data")
    into.save_id = origin.save_id if isinstance(origin, Origin) else into.save_id
    into.version = version if isinstance(version, str) else into.version
    into.has_planner_data = into.has_planner_data or bool(said)
    into.writer = "MCoreMetadata" if "mcore_data" in state else into.writer


def _add_tensor(tensors: dict[str, StoredTensor], name: str, new: StoredTensor) -> None:
    """Ranks that wrote metadata of their own each tell their own parts."""
    old = tensors.get(name)
    if old is None:
        tensors[name] = new
        return
    old.chunks, old.held = old.chunks + new.chunks, old.held + new.held
    old.cuts = tuple(max(pair) for pair in zip(old.cuts, new.cuts, strict=False))


def _add_entry(into: DcpMetadata, fqn: str, stored: Stored, wanted: Callable[[str], bool]) -> None:
    need = into.files.setdefault(stored.path, FileNeed())
    need.end = max(need.end, stored.offset + stored.length)
    need.entries += 1
    need.kinds.add(kind_of(fqn))
    into.entries[fqn] = into.entries.get(fqn, 0) + 1
    into.transforms.update(stored.transforms)
    if wanted(fqn):
        into.places[fqn] = (stored.path, stored.offset, stored.length)
    tensor = into.tensors.get(fqn)
    if tensor is not None and tensor.chunks == 1:
        tensor.file = stored.path
