"""Files that `torch.save` wrote: a zip whose `data.pkl` names the tensors, and whose other entries are their numbers.

Only the zip's directory and the pickle are read. Two older forms are known: several pickles one behind the other
(before torch 1.6), and a tar (before 0.1.10), of which nothing but its kind is told.
"""

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints import pickles
from cairn.formats.checkpoints.dtypes import bytes_of, short_of_torch
from cairn.formats.checkpoints.pickles import Global, Persistent, PickleFault, Record
from cairn.formats.checkpoints.shapes import Unreadable
from cairn.formats.checkpoints.source import Listing

# The first pickle of the form before torch 1.6 is this number.
_OLD_MAGIC = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
# A directory of 100,000 entries; the memory for more is not there.
MAX_DIRECTORY = 10 * 1024 * 1024
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, ValueError, EOFError, struct.error)


@dataclass(frozen=True)
class Stored:
    """A tensor as the pickle describes it; `key` names its numbers, so that tied tensors share it."""

    dtype: str
    shape: tuple[int, ...]
    key: str = ""
    offset: int = 0


@dataclass(frozen=True)
class TorchFile:
    """What one file says: `value` is what was saved, with `Stored` for every tensor."""

    form: str
    value: Any
    globals: tuple[str, ...] = ()
    problems: tuple[str, ...] = field(default=())


def looks_so(listing: Listing, path: str) -> bool:
    """Whether the file begins as one of the three forms (a zip may still be somebody else's)."""
    try:
        head = listing.head(path, 512)
    except Unreadable:
        return False
    return head.startswith(b"PK\x03\x04") or _OLD_MAGIC in head[:32] or is_old_tar(head)


def is_old_tar(head: bytes) -> bool:
    return head[257:262] == b"ustar" and head[:100].rstrip(b"\0") in (b"sys_info", b"pickle", b"storages", b"tensors")


def read(listing: Listing, path: str) -> TorchFile:
    """Raises `Unreadable` for what is cut short, too large, or no file of torch's; `UnsafePickle` for a hostile one."""
    head = listing.head(path, 512)
    if head.startswith(b"PK\x03\x04"):
        return _read_zip(listing, path)
    if _OLD_MAGIC in head[:32]:
        return _read_old(listing, path)
    if is_old_tar(head):
        return TorchFile("tar (before torch 0.1.10)", None)
    if not head.strip(b"\0"):
        raise Unreadable("is empty, or holds nothing but zeros at its beginning")
    raise Unreadable("is no file that torch.save wrote")


def _read_zip(listing: Listing, path: str) -> TorchFile:
    with open_zip(listing, path) as archive:
        sizes = {each.filename: each for each in archive.infolist()}
        where = next((name for name in sizes if name == "data.pkl" or name.endswith("/data.pkl")), None)
        if where is None:
            raise Unreadable("is a zip without data.pkl, so torch.save did not write it")
        if where.removesuffix("data.pkl") + "constants.pkl" in sizes:
            raise Unreadable("is a TorchScript program, which holds code; it is no checkpoint")
        loaded = pickles.load(member(archive, sizes[where], pickles.MAX_BYTES))
    value = with_tensors(loaded.value)
    folder = where.removesuffix("data.pkl") + "data/"
    faults = _storage_faults(loaded.persistent, {name: each.file_size for name, each in sizes.items()}, folder)
    return TorchFile("zip", value, loaded.globals, faults)


def open_zip(listing: Listing, path: str) -> zipfile.ZipFile:
    """The zip, once its directory is known to be of a size that may be read. Raises `Unreadable`."""
    if (size := _directory_bytes(listing, path)) > MAX_DIRECTORY:
        raise Unreadable(f"is a zip with a directory of {size:,} bytes; at most {MAX_DIRECTORY:,} are read")
    try:
        return zipfile.ZipFile(listing.open(path))
    except _ZIP_FAULTS as fault:
        raise Unreadable(f"is no sound zip ({fault}): it was cut short, or is still being written") from None


def _directory_bytes(listing: Listing, path: str) -> int:
    size = listing.size(path)
    tail = listing.exact(path, max(0, size - 66_000), min(size, 66_000))
    at = tail.rfind(b"PK\x05\x06")
    if at < 0 or len(tail) < at + 22:
        raise Unreadable("is a zip without its directory at the end: it was cut short, or is still being written")
    length: int = struct.unpack_from("<L", tail, at + 12)[0]
    at = tail.rfind(b"PK\x06\x06")
    if length == 0xFFFFFFFF and at >= 0 and len(tail) >= at + 56:
        length = struct.unpack_from("<Q", tail, at + 40)[0]
    return length


def member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, limit: int) -> bytes:
    """An entry's bytes, unpacked no further than `limit`, whatever its header promises. Raises `Unreadable`."""
    try:
        with archive.open(entry) as stream:
            data = stream.read(limit + 1)
    except _ZIP_FAULTS as fault:
        raise Unreadable(f"has an entry {entry.filename} that cannot be read ({fault})") from None
    if len(data) > limit:
        raise Unreadable(f"has an entry {entry.filename} of more than {limit:,} bytes, which is not read")
    return data


def _read_old(listing: Listing, path: str) -> TorchFile:
    """Magic, protocol, system, then the object; behind it the keys of the storages and their numbers."""
    data = memoryview(listing.exact(path, 0, min(listing.size(path), pickles.MAX_BYTES)))
    at = 0
    loaded = None
    for _ in range(4):
        loaded = pickles.load_first(data[at:])
        at += loaded.length
    if loaded is None:
        raise PickleFault("holds no object")
    return TorchFile("pickles (before torch 1.6)", with_tensors(loaded.value), loaded.globals)


def with_tensors(value: Any) -> Any:
    """The same with `Stored` for what the pickle describes as a tensor. Depth is bounded; deeper stays as it is."""
    done: dict[int, Any] = {}

    def turn(each: Any, depth: int) -> Any:
        if depth > 40 or not isinstance(each, (dict, list, tuple, Record)):
            return each
        if id(each) in done:
            return done[id(each)]
        turned: Any
        if isinstance(each, Record):
            turned = stored_of(each) or each
        elif isinstance(each, dict):
            turned = {key: turn(inner, depth + 1) for key, inner in each.items()}
        elif any(isinstance(inner, (dict, list, tuple, Record)) for inner in each):
            turned = type(each)(turn(inner, depth + 1) for inner in each)
        else:
            turned = each
        done[id(each)] = turned
        return turned

    return turn(value, 0)


def stored_of(record: Record) -> Stored | None:
    """A tensor from one of torch's calls that rebuild it; None for anything else."""
    for _ in range(8):
        name, args = record.name, record.args
        if name in _REBUILD and len(args) >= 3 and isinstance(args[0], Persistent):
            return _stored(args)
        if name == "torch._utils._rebuild_wrapper_subclass" and len(args) >= 3 and _is_shape(args[2]):
            return Stored(short_of_torch(str(args[1])), tuple(args[2]))
        # A parameter, or a subclass, wraps the tensor in its first argument.
        inner = args[2] if name == "torch._tensor._rebuild_from_type_v2" and len(args) > 2 else args
        if name not in _WRAPS or not isinstance(inner, tuple) or not inner:
            return None
        if not isinstance(inner[0], Record):
            return _stored(inner) if isinstance(inner[0], Persistent) and len(inner) >= 3 else None
        record = inner[0]
    return None


_REBUILD = {f"torch._utils._rebuild_{name}" for name in ("tensor", "tensor_v2", "tensor_v3", "qtensor")}
_WRAPS = {
    "torch._utils._rebuild_parameter",
    "torch._utils._rebuild_parameter_with_state",
    "torch._tensor._rebuild_from_type_v2",
}


def _stored(args: tuple[Any, ...]) -> Stored | None:
    where, offset, shape = args[0].id, args[1], args[2]
    if not _is_shape(shape) or not isinstance(where, tuple) or len(where) < 5 or not isinstance(offset, int):
        return None
    dtype = next((each for each in args[3:] if isinstance(each, Global) and each.module == "torch"), where[1])
    return Stored(short_of_torch(str(dtype)), tuple(shape), str(where[2]), offset)


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(type(each) is int and 0 <= each < 2**63 for each in value)


def _storage_faults(kept: Sequence[Persistent], sizes: Mapping[str, int], folder: str) -> tuple[str, ...]:
    """Tensors whose numbers are not in the zip, or are fewer than the pickle says."""
    for key, kind, count in _storages(kept):
        size, width = sizes.get(folder + key), bytes_of(short_of_torch(kind))
        if size is None:
            return (f"describes a tensor whose numbers ({folder}{key}) it does not hold",)
        if width is not None and size != count * width and kind != "torch.storage.UntypedStorage":
            return (f"holds {size:,} bytes for a tensor ({folder}{key}) of {count:,} numbers of {width} bytes",)
    return ()


def _storages(kept: Sequence[Persistent]) -> Iterator[tuple[str, str, int]]:
    for parts in (each.id for each in kept):
        if isinstance(parts, tuple) and len(parts) >= 5 and parts[0] == "storage" and isinstance(parts[4], int):
            yield str(parts[2]), str(parts[1]), parts[4]
