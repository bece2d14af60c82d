"""Values inside W&B's records: JSON in which NaN and Infinity stand as bare words, and nested names."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cairn.formats import jsonfile
from cairn.formats.refusals import Refused

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
MAX_JSON_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 32
_NUMBER_BEGINS = frozenset("-0123456789NI")


class Unusable(ValueError):
    """A value that cannot be kept."""


def number(text: str) -> float | None:
    """The number that a JSON text is; None for another value (true is no number), or one that no double holds."""
    if not text or text[0] not in _NUMBER_BEGINS or "_" in text:
        return None
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) or text in NON_FINITE else None


def value(text: str) -> Any:
    """Any JSON value. Raises `Unusable`."""
    if (known := number(text)) is not None:
        return int(text) if known.is_integer() and text.lstrip("-").isdigit() else known
    if len(text) > MAX_JSON_BYTES:
        raise Unusable(f"a value of {len(text):,} characters")
    try:
        return jsonfile.loads(text, max_depth=MAX_DEPTH)
    except (json.JSONDecodeError, Refused) as fault:
        raise Unusable(str(fault)) from None


def numbers_within(found: Any, name: str) -> Iterator[tuple[str, float]]:
    """Numbers with their names, `a.b` for those below `a`. What W&B keeps as a medium (a histogram) has none."""
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        if (known := as_float(found)) is not None:
            yield name, known
    elif isinstance(found, Mapping) and "_type" not in found:
        for key, each in found.items():
            yield from numbers_within(each, f"{name}.{key}")


def as_float(found: int | float) -> float | None:
    try:
        return float(found)
    except OverflowError:
        return None


def put(tree: dict[str, Any], path: Sequence[str], found: Any) -> None:
    """Sets the value at a path, making what is missing on the way; a value that stands in the way gives way."""
    for name in path[:-1]:
        below = tree.get(name)
        if not isinstance(below, dict):
            below = tree[name] = {}
        tree = below
    tree[path[-1]] = found


def take(tree: dict[str, Any], path: Sequence[str]) -> None:
    """Takes the value at a path away, where there is one."""
    for name in path[:-1]:
        below = tree.get(name)
        if not isinstance(below, dict):
            return
        tree = below
    tree.pop(path[-1], None)
