"""Files of the safetensors format, single or sharded: 8 bytes length, a JSON header, then the numbers.

Only the header is read. Format: the safetensors library's own description; a header that the library refuses
(gaps, overlaps, a size that does not fit the shape) is reported here too.
"""

import json
import math
import struct
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from cairn.formats import Refused, jsonfile
from cairn.formats.checkpoints.dtypes import bytes_of, short_of_safetensors
from cairn.formats.checkpoints.shapes import Inspection, Tensor, Unreadable
from cairn.formats.checkpoints.source import HEAD_BYTES, Listing
from cairn.formats.checkpoints.steps import claim_of
from cairn.formats.checkpoints.weights import Index, Weights, compare_with_index, expected_shards, is_shard, read_index
from cairn.formats.checkpoints.weights_alone import describe_weights

NAME = "safetensors"
LOOKS_FOR = "*.safetensors whose header is JSON, or model.safetensors.index.json"
INDEX = "model.safetensors.index.json"
# The library stops at 100 MB, which takes more memory than reading may; so do many short names in less.
MAX_HEADER = 32 * 1024 * 1024
HEADS_AT_ONCE = 256
# Of all files of a checkpoint, whose names are compared.
MAX_NAMES = 500_000


def matches(listing: Listing) -> bool:
    return any(_looks_so(listing, path) for path in _candidates(listing)) or bool(_indexes(listing))


def read(listing: Listing) -> Inspection:
    found, metadata = read_weights(listing)
    facts = {"metadata": metadata} if metadata else None
    return describe_weights(listing, NAME, found, claims=_claims(metadata), facts=facts)


def read_weights(listing: Listing, paths: Sequence[str] | None = None) -> tuple[Weights, dict[str, str]]:
    """What the files directly in the root say (or `paths`), together with their `__metadata__`."""
    found = Weights()
    index = _index(listing, found) if paths is None else None
    if index:
        wanted = list(dict.fromkeys(index.weight_map.values()))
    else:
        wanted = list(_candidates(listing) if paths is None else paths)
        wanted = list(dict.fromkeys([*wanted, *expected_shards(wanted)]))
    found.lacks(path for path in wanted if path not in listing)
    found.files = [path for path in wanted if path in listing]
    metadata: dict[str, str] = {}
    homes: dict[str, str] = {}
    tensor_bytes = 0
    for path, header in zip(found.files, _headers(listing, found.files), strict=True):
        try:
            if isinstance(header, Unreadable):
                raise header
            tensor_bytes += _take(path, header, listing.size(path), found, homes, metadata)
        except Unreadable as fault:
            found.fault(path, str(fault))
    if index:
        compare_with_index(found, index, homes, tensor_bytes)
    return found, metadata


def _candidates(listing: Listing) -> list[str]:
    """Files of weights in the root; an adapter's or consolidated copy beside numbered shards is not mixed in."""
    names = [path for path in listing.top() if path.endswith(".safetensors")]
    for favourite in ("model.safetensors", "adapter_model.safetensors"):
        if favourite in names:
            return [favourite]
    numbered = [path for path in names if is_shard(path)]
    return numbered or names


def _indexes(listing: Listing) -> list[str]:
    return [path for path in listing.top() if path.endswith(".safetensors.index.json")]


def _index(listing: Listing, found: Weights) -> Index | None:
    indexes = _indexes(listing)
    if not indexes or "model.safetensors" in listing:
        return None
    path = INDEX if INDEX in indexes else indexes[0]
    try:
        return read_index(listing, path)
    except Unreadable as fault:
        found.fault(path, str(fault))
        return None


def _looks_so(listing: Listing, path: str) -> bool:
    """A length that the file can hold, then a brace."""
    try:
        head = listing.head(path)
    except Unreadable:
        return False
    return len(head) > 8 and head[8:9] == b"{" and int.from_bytes(head[:8], "little") < max(listing.size(path), 2**40)


def _headers(listing: Listing, paths: Sequence[str]) -> Iterator[bytes | Unreadable]:
    """The header of every file, in order: some heads at once, then the rest of those that are longer."""
    for start in range(0, len(paths), HEADS_AT_ONCE):
        some = paths[start : start + HEADS_AT_ONCE]
        heads = listing.exact_many([(path, 0, min(HEAD_BYTES, listing.size(path))) for path in some])
        found = [_of_head(head, listing.size(path)) for path, head in zip(some, heads, strict=True)]
        longer = [(path, 8, each) for path, each in zip(some, found, strict=True) if isinstance(each, int)]
        rest = listing.exact_many(longer)
        for each in found:
            yield next(rest) if isinstance(each, int) else each


def _of_head(head: bytes | Unreadable, size: int) -> bytes | int | Unreadable:
    """The header where the file's head holds all of it, else its length."""
    try:
        if isinstance(head, Unreadable):
            raise head
        length = _header_length(head, size)
    except Unreadable as fault:
        return fault
    return head[8 : 8 + length] if 8 + length <= len(head) else length


def _header_length(head: bytes, size: int) -> int:
    if len(head) < 8:
        raise Unreadable(f"has {size} bytes, too few for a header: it was cut short")
    (length,) = struct.unpack("<Q", head[:8])
    if length > MAX_HEADER:
        raise Unreadable(f"announces a header of {length:,} bytes; at most {MAX_HEADER:,} are read")
    if 8 + length > size:
        raise Unreadable(f"ends inside its header: {size:,} bytes of {8 + length:,}: it was cut short")
    return int(length)


def _take(path: str, header: bytes, size: int, found: Weights, homes: dict[str, str], metadata: dict[str, str]) -> int:
    """Adds the tensors of one file; answers the bytes of its tensors."""
    if len(homes) >= MAX_NAMES:
        raise Unreadable(f"is not looked at: the files before it describe {len(homes):,} tensors")
    entries = _parsed(header)
    said = entries.pop("__metadata__", None)
    if isinstance(said, dict):
        metadata.update({key: value for key, value in said.items() if isinstance(value, str)})
    spans = []
    for name, entry in entries.items():
        tensor, begin, end = _tensor(path, name, entry)
        spans.append((begin, end, name))
        if name in homes:
            found.fault(path, f"holds {name[:100]}, which {homes[name]} holds too")
        homes[name] = path
        found.add(tensor)
    found.read += 1
    _check_spans(spans, size - 8 - len(header))
    return sum(end - begin for begin, end, _ in spans)


def _parsed(header: bytes) -> dict[str, Any]:
    try:
        jsonfile.check_size(header, MAX_HEADER)
        entries = json.loads(header)
    except Refused:
        raise Unreadable(f"has a header of more than {jsonfile.MAX_PARTS:,} values, which is too many") from None
    except (ValueError, RecursionError):
        raise Unreadable("has a header that is no JSON") from None
    if not isinstance(entries, dict):
        raise Unreadable("has a header that is no JSON object")
    return entries


def _tensor(path: str, name: str, entry: Any) -> tuple[Tensor, int, int]:
    if not isinstance(entry, dict):
        raise Unreadable(f"describes {name[:100]} by something that is no object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or not _counts(shape, 64) or not _counts(offsets, 2) or len(offsets) != 2:
        raise Unreadable(f"describes {name[:100]} without a sound dtype, shape and data_offsets")
    tensor = Tensor(name, short_of_safetensors(dtype), tuple(shape), path)
    width = bytes_of(tensor.dtype)
    if offsets[1] < offsets[0] or (width is not None and math.prod(shape) * width != offsets[1] - offsets[0]):
        raise Unreadable(f"gives {name[:100]} {offsets[1] - offsets[0]:,} bytes, which do not fit its shape and dtype")
    return tensor, offsets[0], offsets[1]


def _counts(value: Any, most: int) -> TypeGuard[list[int]]:
    return (
        isinstance(value, list)
        and len(value) <= most
        and all(type(each) is int and 0 <= each < 2**63 for each in value)
    )


def _check_spans(spans: list[tuple[int, int, str]], available: int) -> None:
    at = 0
    for begin, end, name in sorted(spans):
        if begin != at:
            raise Unreadable(f"has a gap or an overlap before {name[:100]}, so the library refuses it")
        at = end
    if at > available:
        raise Unreadable(f"was cut short: {available:,} of {at:,} bytes of tensors are there")
    if at < available:
        raise Unreadable(f"has {available - at:,} bytes behind its last tensor, so the library refuses it")


def _claims(metadata: dict[str, str]) -> list[Any]:
    for key in ("global_step", "step"):
        text = metadata.get(key, "")
        if text.isascii() and text.isdigit() and len(text) < 19:
            return claim_of(int(text), f"__metadata__ {key}")
    return []
