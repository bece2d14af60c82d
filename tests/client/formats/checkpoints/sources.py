"""Where the tests read checkpoints from: committed files that real libraries made, and files in memory."""

import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.formats.checkpoints import File, Inspection, LocalSource, Problem, Unreadable, inspect
from cairn.formats.checkpoints.source import OneByOne

FIXTURES = Path(__file__).parents[2] / "fixtures" / "checkpoints"


class MemorySource(OneByOne):
    """Files as bytes. A value that is an error is raised where the file is read; `sizes` may lie about a size."""

    def __init__(
        self, files: Mapping[str, bytes | Unreadable], name: str = "/ckpt/run", sizes: Mapping[str, int] | None = None
    ) -> None:
        self.name, self.content, self.sizes = name, dict(files), dict(sizes or {})
        self.read_bytes = 0

    def listed(self) -> tuple[Sequence[File], Sequence[Problem]]:
        return [File(path, self.sizes.get(path, _size(data))) for path, data in self.content.items()], []

    def read(self, path: str, offset: int, length: int) -> bytes:
        data = self.content[path]
        if isinstance(data, Unreadable):
            raise data
        self.read_bytes += len(data[offset : offset + length])
        return data[offset : offset + length]


def _size(data: bytes | Unreadable) -> int:
    return 100 if isinstance(data, Unreadable) else len(data)


def files_of(folder: Path | str) -> dict[str, bytes]:
    """A fixture's files by path, to be changed by a test."""
    root = FIXTURES / folder
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def inspected(place: str | Path) -> Inspection:
    return inspect(LocalSource(FIXTURES / place))


def inspect_files(files: Mapping[str, bytes | Unreadable], name: str = "/ckpt/run", **sizes: int) -> Inspection:
    return inspect(MemorySource(files, name, sizes))


def states(found: Inspection) -> dict[str, str]:
    return {name: str(finding.state) for name, finding in found.pieces.items()}


def reasons(found: Inspection) -> str:
    return "\n".join(f"{each.path}: {each.reason}" for each in found.problems)


def safetensors_bytes(tensors: Mapping[str, tuple[str, Sequence[int], int]], **metadata: str) -> bytes:
    """A whole file: name to (dtype, shape, bytes)."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    at = 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)
