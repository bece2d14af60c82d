"""Addresses: every state of a page is in its URL, so each choice is a link that changes one part of it."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlencode

from registry.keyset import InvalidCursor

Value = str | Iterable[str] | None


def address(path: str, **parameters: Value) -> str:
    """A path with those parameters that say something; a name that is a Python word has a trailing underscore."""
    pairs: list[tuple[str, str]] = []
    for name, value in parameters.items():
        values = [value] if isinstance(value, str) else list(value or ())
        pairs += [(name.rstrip("_"), each) for each in values if each]
    return f"{path}?{urlencode(pairs)}" if pairs else path


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def changed(path: str, parameters: Mapping[str, Value], **changes: Value) -> str:
    """The same page with some parameters changed; None or '' leaves one out. A new choice starts at the first page."""
    return address(path, **{**parameters, "after": None, **changes})


def to_cursor(values: list[Any] | None) -> str | None:
    """The place after which the next page starts, as one word of a URL."""
    if values is None:
        return None
    return urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).decode().rstrip("=")


def from_cursor(text: str | None) -> list[Any] | None:
    """The place again; its values are checked where they are used. Raises InvalidCursor."""
    if not text:
        return None
    try:
        values = json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, list):
        raise InvalidCursor("The link's place in the list cannot be read. Start again from the first rows.")
    return values


def local_path(text: str | None) -> str:
    """Where to go after signing in: a path of ours, never another site."""
    if not text or not text.startswith("/") or text.startswith(("//", "/\\", "/login", "/logout")):
        return "/"
    return text if text.isprintable() else "/"
