"""`cairn.json`: what the registry knew of a checkpoint when it was committed, beside its files.

    {"cairn": 1, "id": "...", "project": "llm", "run": {"id": "...", "name": "7b-a"}, "attempt": 2, "step": 1000,
     "kind": "archive", "saved_at": "2026-11-01T10:00:00Z", "pieces": {...}, "scores": [...], "layout": {...},
     "parents": [{"relation": "resumed_from", "checkpoint_id": "...", "of": {"project", "run", "attempt", ...}}],
     "resumed_from": {"run", "attempt", "step", "kind"}, "restart": true, "written_at": "...",
     "digest": {"algorithm": "blake3", "value": "..."}, "manifest": [{"path", "bytes", "digest"}]}

The words are those of `POST /checkpoints:batch`, so that a registry which was lost can be filled again from storage;
a parent is named by what it is too, since ids do not outlive a registry. Numbers that are not finite are strings.
`resumed_from` is what the attempt loaded (without `run`: of this run), `restart` that it began anew on purpose. `bytes`
and `file_count` are those of a format that no reader knows, which cannot tell by itself whether it is whole.
A reader refuses what it does not know, so a writer says the version in which the newest of its fields came.
"""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cairn.formats import Refused, jsonfile
from cairn.formats.checkpoints.cairn_json_shape import MAX_BYTES, NAME, SINCE_2, VERSION, fault_of
from cairn.formats.checkpoints.shapes import Unreadable
from cairn.formats.checkpoints.source import Listing

# What says where a checkpoint lies or when this was written; all else is registered again as it stands.
_NOT_REGISTERED = frozenset({"cairn", "id", "run", "manifest", "digest", "written_at", "parents", *SINCE_2})


def parse(content: bytes) -> dict[str, Any]:
    """The document. Raises `Unreadable` for what is too large, no JSON, of a newer version, or not of this shape."""
    try:
        document = jsonfile.load(content, max_bytes=MAX_BYTES)
    except Refused as fault:
        raise Unreadable(f"{NAME}: {fault}") from None
    version = document.get("cairn") if isinstance(document, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise Unreadable(f"{NAME} does not say which version it is of, so it is left aside.")
    if version > VERSION:
        raise Unreadable(f"{NAME} is of version {version}; this client reads up to {VERSION}. Update the client.")
    if wrong := fault_of(document):
        raise Unreadable(f"{NAME}: {wrong}")
    return dict(document)


def read(listing: Listing) -> dict[str, Any] | None:
    """What stands beside the checkpoint's files; None where nothing does. Raises `Unreadable`."""
    return parse(listing.all_of(NAME, MAX_BYTES)) if NAME in listing else None


def encode(document: Mapping[str, Any]) -> bytes:
    """The bytes that are written; the version is added. Raises `Unreadable` for what could not be read back."""
    said = {"cairn": VERSION if any(name in document for name in SINCE_2) else 1, **document}
    if wrong := fault_of(said):
        raise Unreadable(f"{NAME}: {wrong}")
    text = json.dumps(said, ensure_ascii=False, allow_nan=False, indent=1)
    content = text.encode("utf-8") + b"\n"
    parse(content)
    return content


def write(folder: str | os.PathLike[str], document: Mapping[str, Any]) -> Path:
    """Puts `cairn.json` into a folder, whole or not at all, and durably: the file first, then its name.

    Raises `Unreadable` for a document that could not be read back, OSError where the folder cannot be written. A link
    of that name is replaced, never followed. The same content again touches nothing.
    """
    content = encode(document)
    place = Path(folder) / NAME
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not _holds(directory, content):
            _replace(directory, content)
    finally:
        os.close(directory)
    return place


def to_item(document: Mapping[str, Any]) -> dict[str, Any]:
    """The item of `POST /checkpoints:batch` that registers it again. Parents are tied afterwards, by what they are."""
    item = {key: value for key, value in document.items() if key not in _NOT_REGISTERED}
    return {**item, "run": document["run"]["name"], "state": "committed"}


def _holds(directory: int, content: bytes) -> bool:
    try:
        handle = os.open(NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        return os.fstat(handle).st_size == len(content) and os.read(handle, len(content) + 1) == content
    finally:
        os.close(handle)


def _replace(directory: int, content: bytes) -> None:
    scratch = f".{NAME}.{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(scratch, flags, 0o666, dir_fd=directory)
    try:
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        os.replace(scratch, NAME, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(scratch, dir_fd=directory)
        raise
    os.fsync(directory)
