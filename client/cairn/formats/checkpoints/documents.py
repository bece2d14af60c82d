"""JSON beside a checkpoint, read from a listing: bounded in size and depth."""

from typing import Any

from cairn.formats import Refused, jsonfile
from cairn.formats.checkpoints.shapes import Unreadable, path_text
from cairn.formats.checkpoints.source import Listing

MAX_BYTES = 32 * 1024 * 1024


def read_json(listing: Listing, path: str, max_bytes: int = MAX_BYTES) -> Any:
    """The value in a JSON file. Raises `Unreadable` for what is too large, too deep, cut short or no JSON."""
    content = listing.all_of(path, max_bytes)
    try:
        return jsonfile.load(content, max_bytes=max_bytes)
    except Refused as fault:
        raise Unreadable(f"{path_text(path)}: {fault}") from None


def read_text(listing: Listing, path: str, max_bytes: int = 4096) -> str:
    """A small text file (`latest`) without the space around it. Raises `Unreadable`."""
    try:
        return listing.all_of(path, max_bytes).decode("utf-8").strip()
    except UnicodeDecodeError:
        raise Unreadable(f"{path_text(path)} is no UTF-8 text.") from None
