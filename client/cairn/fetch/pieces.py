"""What is to be copied: files by safe paths, cut into pieces that threads copy side by side."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cairn.formats.checkpoints import File, Unreadable
from cairn.formats.checkpoints.cairn_json_shape import NAME as SIDECAR
from cairn.formats.checkpoints.shapes import path_text
from cairn.types import Manifest

MIB = 1024 * 1024
PIECE_BYTES = 64 * MIB  # the unit of a journal line: what a broken fetch does again
READ_BYTES = 8 * MIB  # what one thread holds at once


@dataclass(frozen=True)
class Piece:
    """A stretch of a file. Bytes."""

    path: str
    offset: int
    length: int


def files_to_copy(listed: Sequence[File], manifest: Manifest | None) -> list[File]:
    """The files of the checkpoint, and its `cairn.json`. Raises `Unreadable` where one is missing, cut or unsafe."""
    for each in listed:
        refuse_unsafe(each.path)
    if manifest is None:
        return list(listed)
    found = {each.path: each for each in listed}
    files = [found[SIDECAR]] if SIDECAR in found else []
    for wanted in manifest.files:
        refuse_unsafe(wanted.path)
        there = found.get(wanted.path)
        if there is None:
            raise Unreadable(f"{path_text(wanted.path)} is missing there")
        if there.bytes != wanted.bytes:
            told = f"has {there.bytes:,} bytes there, and {wanted.bytes:,} are recorded"
            raise Unreadable(f"{path_text(wanted.path)} {told}")
        files.append(there)
    return files


def refuse_unsafe(path: str) -> None:
    """Raises `Unreadable` for a path that could lead out of the folder it is written into."""
    parts = path.split("/")
    if not path or "\0" in path or os.path.isabs(path) or any(part in ("", ".", "..") for part in parts):
        raise Unreadable(f"{path_text(path)!r} is no path below a folder, so nothing is copied")


def pieces_of(files: Sequence[File]) -> Iterator[Piece]:
    """Every stretch of every file, an empty file as one of no bytes; large files first, so that none is last alone."""
    for each in sorted(files, key=lambda each: (-each.bytes, each.path)):
        for offset in range(0, each.bytes or 1, PIECE_BYTES):
            yield Piece(each.path, offset, min(PIECE_BYTES, each.bytes - offset))
