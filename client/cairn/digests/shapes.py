"""What digesting answers with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cairn.formats.checkpoints.shapes import Problem, Unreadable, path_text

# Receives numbers of bytes, from one thread at a time.
Progress = Callable[[int], None]


@dataclass(frozen=True)
class FileDigest:
    """`path` is relative to the root, `value` lower-case hexadecimal."""

    path: str
    bytes: int
    value: str


@dataclass(frozen=True)
class TreeDigest:
    """`value` is None where a file could not be digested: `problems` says which and why."""

    algorithm: str
    value: str | None
    files: tuple[FileDigest, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.files)

    def replica_fields(self) -> dict[str, Any]:
        """The fields of a replica. Raises `Unreadable` where a file could not be digested, or named in JSON."""
        if self.value is None:
            raise Unreadable("; ".join(f"{path_text(each.path)} {each.reason}" for each in self.problems[:5]))
        odd = next((each.path for each in self.files if path_text(each.path) != each.path), None)
        if odd is not None:
            raise Unreadable(f"the name {path_text(odd)} is no UTF-8, so no manifest can list it")
        return {
            "bytes": self.bytes,
            "file_count": len(self.files),
            "digest": {"algorithm": self.algorithm, "value": self.value},
            "manifest": [{"path": each.path, "bytes": each.bytes, "digest": each.value} for each in self.files],
        }
