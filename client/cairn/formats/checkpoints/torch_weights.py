"""Weights in files of `torch.save`: `pytorch_model.bin`, alone or in numbered files with an index."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from cairn.formats.checkpoints import torch_files
from cairn.formats.checkpoints.dtypes import bytes_of
from cairn.formats.checkpoints.shapes import Tensor, Unreadable
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.torch_files import Stored
from cairn.formats.checkpoints.weights import Weights, compare_with_index, expected_shards, read_index

INDEX = "pytorch_model.bin.index.json"


def read_weights(listing: Listing, paths: Sequence[str] = ()) -> Weights:
    """What the files say, together; with the index's files where there is one and no `paths` are named."""
    found = Weights()
    index = None
    wanted = [*paths, *(each for each in expected_shards(paths) if each not in paths)]
    if not paths and INDEX in listing:
        try:
            index = read_index(listing, INDEX)
            wanted = list(dict.fromkeys(index.weight_map.values()))
        except Unreadable as fault:
            found.fault(INDEX, str(fault))
    found.lacks(path for path in wanted if path not in listing)
    found.files = [path for path in wanted if path in listing]
    homes: dict[str, str] = {}
    total = 0
    for path in found.files:
        try:
            file = torch_files.read(listing, path)
        except Unreadable as fault:
            found.fault(path, str(fault))
            continue
        for problem in file.problems:
            found.fault(path, problem)
        total += add_tensors(found, file.value, path, homes)
    if index:
        compare_with_index(found, index, homes, total)
    return found


def add_tensors(found: Weights, value: Any, path: str, homes: dict[str, str] | None = None) -> int:
    """Adds every tensor of a state dict; answers their bytes. Tied tensors are parameters once."""
    found.read += 1
    counted: set[tuple[str, int, tuple[int, ...]]] = set()
    total = 0
    for name, stored in named_tensors(value):
        key = (stored.key, stored.offset, stored.shape)
        new = not stored.key or key not in counted
        counted.add(key)
        found.add(Tensor(name, stored.dtype, stored.shape, path), counted=new)
        total += math.prod(stored.shape) * (bytes_of(stored.dtype) or 0) if new else 0
        if homes is not None:
            homes[name] = path
    return total


def named_tensors(value: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Stored]]:
    """Tensors by their dotted names, through dictionaries and lists."""
    if isinstance(value, Stored):
        yield prefix, value
    elif depth < 20 and isinstance(value, (dict, list, tuple)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in pairs:
            yield from named_tensors(inner, f"{prefix}.{key}" if prefix else str(key), depth + 1)


def is_state_dict(value: Any) -> bool:
    """Names to tensors, and little else: what `module.state_dict()` gives."""
    if not isinstance(value, dict) or not value:
        return False
    tensors = sum(isinstance(each, Stored) for each in value.values())
    return tensors > 0 and tensors >= 0.8 * len(value) and all(isinstance(key, str) for key in value)


def is_optimizer(value: Any) -> bool:
    """`state` and `param_groups`, as every optimizer of torch gives; wrapped ones hold it under a name."""
    if not isinstance(value, dict):
        return False
    if "param_groups" in value and ("state" in value or "optimizer_state_dict" in value):
        return True
    return any(name in value for name in ("optimizer_state_dict", "base_optimizer_state", "fp32_from_fp16_params"))


def has_moments(value: Any) -> bool:
    """Whether an optimizer's state holds any tensor: before the first step it is empty."""
    return next(named_tensors(value), None) is not None
