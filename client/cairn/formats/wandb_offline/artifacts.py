"""The message of an artifact: its names, metadata and the list of its files."""

from typing import Any

from cairn.formats.wandb_offline import values
from cairn.formats.wandb_offline.shapes import Artifact, Entry
from cairn.formats.wandb_offline.wire import fields, message, signed, text

MAX_ENTRIES = 2_000


def read_artifact(body: bytes, after_index: int | None) -> Artifact:
    """Raises ValueError."""
    said: dict[str, Any] = {"name": "", "type": "", "digest": ""}
    aliases: list[str] = []
    for number, found in fields(body):
        if number in (4, 5, 6):
            said[("type", "name", "digest")[number - 4]] = text(found)
        elif number == 8:
            known = values.value(text(found) or "{}")
            said["metadata"] = known if isinstance(known, dict) else {}
        elif number == 11:
            aliases.append(text(found))
        elif number == 12:
            said |= _manifest(message(found))
    return Artifact(aliases=tuple(dict.fromkeys(aliases)), after_index=after_index, **said)


def _manifest(body: bytes) -> dict[str, Any]:
    entries: list[Entry] = []
    count, size, file = 0, 0, None
    for number, found in fields(body):
        if number == 4:
            entry = _entry(message(found))
            count, size = count + 1, size + entry.bytes
            if len(entries) < MAX_ENTRIES:
                entries.append(entry)
        elif number == 5:
            file = text(found) or None
    return {"entries": tuple(entries), "entry_count": count, "bytes": size, "manifest_file": file}


def _entry(body: bytes) -> Entry:
    path, ref, size = "", None, 0
    for number, found in fields(body):
        if number == 1:
            path = text(found)
        elif number == 3:
            ref = text(found) or None
        elif number == 4:
            size = max(signed(found), 0)
    return Entry(path, size, ref)
