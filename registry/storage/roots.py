"""Storage roots: the only places that the service may ever read, copy or delete in."""

from collections.abc import Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit


def is_below_a_root(uri: str, roots: Sequence[str]) -> bool:
    """Whether a URI lies below one of the configured roots; `..` never counts as below."""
    return any(_is_below(uri, root) for root in roots)


def _is_below(uri: str, root: str) -> bool:
    here, there = _place(uri), _place(root)
    if here[:2] != there[:2]:
        return False
    path, base = PurePosixPath(here[2]), PurePosixPath(there[2])
    return ".." not in path.parts and base in (path, *path.parents)


def _place(uri: str) -> tuple[str, str, str]:
    parts = urlsplit(uri)
    return (parts.scheme or "file", parts.netloc, parts.path or "/")
