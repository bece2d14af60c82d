"""A data cursor as it travels: whole where it is small, by its digest where it is large or no JSON."""

import json
import pickle
from hashlib import sha256
from typing import Any

from cairn.recorder.plain import Plain, TooMuch

MAX_CHARACTERS = 65_536
QUICK_NODES = 1_000  # what a call may walk through; texts count too
ALL_NODES = 2_000_000


def quick_cursor(cursor: Any) -> dict[str, Any] | None:
    """The fields of a record for a cursor that is small; None for one that the background has to look at."""
    plain = Plain(QUICK_NODES, strict=True)
    try:
        said = plain.of(cursor)
    except TooMuch:
        return None
    if plain.left_out:
        return None
    return {"data_cursor": said, "cursor_kind": cursor_kind(said)}


def any_cursor(cursor: Any, kept_at: str | None = None) -> tuple[dict[str, Any], str]:
    """The fields of a record for any cursor, and what should be said of it ('' for nothing). Never raises."""
    kind = f"{type(cursor).__module__}.{type(cursor).__qualname__}"
    plain = Plain(ALL_NODES, strict=True)
    try:
        said = plain.of(cursor)
        text = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (TooMuch, ValueError, TypeError, RecursionError):
        said, text = None, ""
    size: int | None
    if text and not plain.left_out:
        if len(text) <= MAX_CHARACTERS:
            return {"data_cursor": said, "cursor_kind": cursor_kind(said)}, ""
        digest, size = sha256(text.encode("utf-8", "surrogatepass")).hexdigest(), len(text)
        why = f"the data cursor has {size:,} characters, more than {MAX_CHARACTERS:,}: its digest is recorded"
    else:
        digest, size = _pickled(cursor)
        why = f"the data cursor (a {kind}) is no JSON: its digest and type are recorded"
    reference: dict[str, Any] = {"digest": f"sha256:{digest}" if digest else None, "type": kind, "bytes": size}
    reference["kept_at"] = kept_at
    return {"data_cursor": {name: value for name, value in reference.items() if value is not None}}, why


def cursor_kind(said: Any) -> str:
    """`counter` for a bare number or a few of them, which only hold while data and batch size stay; else `state`."""
    if isinstance(said, (int, float)):
        return "counter"
    if isinstance(said, dict) and len(said) <= 4 and all(isinstance(each, (int, float)) for each in said.values()):
        return "counter"
    return "state"


def _pickled(cursor: Any) -> tuple[str, int | None]:
    """Digest and size of what pickling writes; nothing is ever read back."""
    try:
        content = pickle.dumps(cursor, protocol=4)
    except Exception:  # an open file, a lock, a generator
        return "", None
    return sha256(content).hexdigest(), len(content)
