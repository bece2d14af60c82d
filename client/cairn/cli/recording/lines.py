"""Lines of standard input as checkpoints: each a JSON object, in batches."""

import json
from collections.abc import Iterator
from typing import Any, TextIO

from cairn.errors import Invalid
from cairn.numbers import Written

BATCH_ITEMS = 500
Item = tuple[int, dict[str, Any]]  # the line that it stands on, and the registration


def batches_of(lines: TextIO, defaults: dict[str, Any]) -> Iterator[list[Item]]:
    """`defaults` stand in where a line has none of its own. Raises `Invalid` with the line's number."""
    batch: list[Item] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            item = json.loads(line, parse_float=Written, object_pairs_hook=_once)
        except _Twice as twice:
            raise Invalid(f"Line {number} of standard input has {twice} twice in one object.") from None
        except json.JSONDecodeError as fault:
            raise Invalid(f"Line {number} of standard input is no JSON: column {fault.colno}, {fault.msg}.") from None
        except (ValueError, RecursionError):
            raise Invalid(f"Line {number} of standard input is no JSON.") from None
        if not isinstance(item, dict):
            raise Invalid(f"Line {number} of standard input is no JSON object.")
        batch.append((number, {**defaults, **item}))
        if len(batch) == BATCH_ITEMS:
            yield batch
            batch = []
    if batch:
        yield batch


class _Twice(Exception):
    """A key that stands twice: which of its values is meant, nobody can tell."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(repr(next(key for key in keys if keys.count(key) > 1)))
    return found
