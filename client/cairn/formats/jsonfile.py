"""Reads JSON from files that somebody else wrote: bounded in size and depth, honest about repeated keys.

The bare NaN and Infinity that Python's own `json.dump` writes are read as the numbers they mean, since result
files hold them. What a double cannot hold (1e999) stays text, so that it never turns into an infinity.
"""

import json
import math
from typing import Any

from cairn.formats.refusals import Refused

MAX_BYTES = 32 * 1024 * 1024
MAX_DEPTH = 64
# `[[],[],...` costs 32 times its own size once it is read: about 80 bytes of memory for each of these signs.
MAX_PARTS = 1_500_000
NO_JSON = "The file is no JSON: "


class Repeated(dict[str, Any]):
    """An object in which keys stood twice; `clashes` are those whose values differ. The last value stands."""

    clashes: frozenset[str] = frozenset()


class TooLarge(str):
    """A number as written, which no double can hold."""

    __slots__ = ()


def load(content: bytes, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> Any:
    """The value in `content`. Raises `Refused` for what is too large, too deep, no UTF-8 or no JSON."""
    check_size(content, max_bytes)
    try:
        return loads(decode(content), max_depth=max_depth)
    except json.JSONDecodeError as fault:
        raise Refused(f"{NO_JSON}{fault.msg} at line {fault.lineno}, column {fault.colno}.") from None


def check_size(content: bytes, max_bytes: int = MAX_BYTES) -> None:
    if len(content) > max_bytes:
        raise Refused(f"The file has {len(content):,} bytes; a result file has at most {max_bytes:,}.")
    parts = sum(content.count(sign) for sign in (b"[", b"{", b",", b":"))
    if parts > max(MAX_PARTS, len(content) // 20):
        raise Refused(f"The file has {parts:,} values; a result file has at most {MAX_PARTS:,}.")


def decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise Refused(f"The file is no UTF-8 text: byte {fault.start} cannot be read.") from None


def loads(text: str, *, max_depth: int = MAX_DEPTH) -> Any:
    """The value in `text`. Raises `Refused` for what is too deep, `json.JSONDecodeError` for what is no JSON."""
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_float=_float, parse_int=_int)
    except RecursionError:
        raise Refused(f"The file is nested more than {max_depth} deep.") from None
    _check_depth(value, max_depth)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeated = Repeated(found)
    repeated.clashes = frozenset(key for key, value in pairs if repr(value) != repr(found[key]))
    return repeated


def _float(text: str) -> float | TooLarge:
    number = float(text)
    return number if math.isfinite(number) else TooLarge(text)


def _int(text: str) -> int | TooLarge:
    return int(text) if len(text) <= 300 else TooLarge(text)


def _check_depth(value: Any, max_depth: int) -> None:
    """Level by level, without recursion."""
    level = [value]
    for _ in range(max_depth):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    raise Refused(f"The file is nested more than {max_depth} deep.")


def _children(value: Any) -> list[Any]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [child for child in children if isinstance(child, (dict, list))]
