"""Gathers what files of weights say: tensors, parameters, and what is missing or wrong."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cairn.formats.checkpoints.documents import read_json
from cairn.formats.checkpoints.shapes import (
    MAX_TENSORS,
    Finding,
    Inspection,
    Problem,
    Tensor,
    Unreadable,
    absent,
    path_text,
    present,
    unknown,
)
from cairn.formats.checkpoints.source import Listing

SHARD = re.compile(r"(?P<stem>.+)-(?P<number>\d{5,6})-of-(?P<count>\d{5,6})(?P<ending>\.\w+)")
MAX_SHARDS = 100_000


@dataclass
class Weights:
    """What a set of weight files says. `faults` are those of the `problems` that make the weights unusable as they
    are: a file cut short, an index that disagrees."""

    files: list[str] = field(default_factory=list)
    tensors: list[Tensor] = field(default_factory=list)
    tensor_count: int = 0
    parameter_count: int = 0
    dtypes: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    faults: list[Problem] = field(default_factory=list)
    read: int = 0

    @property
    def sound(self) -> bool:
        return not self.faults and not self.missing

    def add(self, tensor: Tensor, *, counted: bool = True) -> None:
        """`counted` is False where the same numbers were counted under another name (tied embeddings)."""
        self.tensor_count += 1
        if len(self.tensors) < MAX_TENSORS:
            self.tensors.append(tensor)
        if counted:
            size = math.prod(tensor.shape)
            self.parameter_count += size
            self.dtypes[tensor.dtype] = self.dtypes.get(tensor.dtype, 0) + size

    def fault(self, path: str, reason: str) -> None:
        """Something that makes the weights unusable as they are."""
        self.faults.append(Problem(path, reason))
        self.problems.append(self.faults[-1])

    def note(self, path: str, reason: str) -> None:
        self.problems.append(Problem(path, reason))

    def lacks(self, paths: Iterable[str]) -> None:
        self.missing = list(dict.fromkeys([*self.missing, *paths]))

    def numbers(self) -> dict[str, Any]:
        """The fields of an `Inspection` that count; None where no header could be read."""
        if not self.read:
            return {"tensors": tuple(self.tensors)}
        counts = {"parameter_count": self.parameter_count, "tensor_count": self.tensor_count}
        return {**counts, "dtypes": self.dtypes, "tensors": tuple(self.tensors)}

    @property
    def finding(self) -> Finding:
        what = self.files[0] if len(self.files) == 1 else f"{len(self.files)} files of weights"
        if self.missing:
            return absent(f"{len(self.missing)} of {len(self.files) + len(self.missing)} files of weights are missing")
        if self.faults:
            return absent(f"{path_text(self.faults[0].path)} {self.faults[0].reason}")
        if not self.files:
            return absent("no file of weights")
        if not self.read:
            return unknown(f"{what}: the header could not be read")
        return present(f"{what}, {self.tensor_count:,} tensors")


def numbers_of(found: Inspection) -> dict[str, Any]:
    """`Weights.numbers` of another reader's answer."""
    return {name: getattr(found, name) for name in ("parameter_count", "tensor_count", "dtypes", "tensors")}


def is_shard(path: str) -> bool:
    """Whether the name is numbered as one of a set."""
    return SHARD.fullmatch(path) is not None


def expected_shards(paths: Iterable[str]) -> list[str]:
    """All names of a set that is numbered `model-00002-of-00004.safetensors`, of each set that occurs."""
    found = (match for path in paths if (match := SHARD.fullmatch(path)))
    sets = dict.fromkeys((each["stem"], len(each["number"]), each["count"], each["ending"]) for each in found)
    return [
        f"{stem}-{number:0{width}}-of-{count}{ending}"
        for stem, width, count, ending in sets
        if int(count) <= MAX_SHARDS
        for number in range(1, int(count) + 1)
    ]


@dataclass(frozen=True)
class Index:
    """`model.safetensors.index.json`: which tensor is in which file."""

    path: str
    weight_map: Mapping[str, str]
    total_bytes: int | None = None


def read_index(listing: Listing, path: str) -> Index:
    """Raises `Unreadable` for what is no index."""
    document = read_json(listing, path)
    weight_map = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(weight_map, dict) or not all(isinstance(each, str) for each in weight_map.values()):
        raise Unreadable(f"{path} has no weight_map of tensor names to files.")
    metadata = document.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    whole = isinstance(total, (int, float)) and not isinstance(total, bool) and total == int(total)
    return Index(path, weight_map, int(total) if whole else None)  # type: ignore[arg-type]


def compare_with_index(found: Weights, index: Index, tensors: Mapping[str, str], tensor_bytes: int) -> None:
    """Reports where an index and its shards differ. `tensors` maps each tensor of the shards to its file."""
    readable = set(found.files) - {each.path for each in found.problems}
    gone = [name for name, file in index.weight_map.items() if file in readable and tensors.get(name) != file]
    extra = [name for name in tensors if name not in index.weight_map]
    if gone:
        found.fault(index.path, f"names {len(gone):,} tensors that their shards do not hold, first {gone[0][:100]}")
    if extra:
        found.fault(index.path, f"does not name {len(extra):,} tensors of the shards, first {extra[0][:100]}")
    if index.total_bytes is not None and found.sound and index.total_bytes != tensor_bytes:
        found.note(index.path, f"says total_size {index.total_bytes:,}; the tensors have {tensor_bytes:,} bytes")
