"""Ids: 63-bit integers of time and randomness, made in the process and shown as short text.

41 bits of milliseconds since 2025 (until 2094) and 22 random bits. Within one process ids always grow, so rows
written together lie together in every index. No database sequence is involved: any process on any host
can make ids, and none of them decides an order that a reader relies on.
"""

import secrets
import threading
import time
from typing import Any

from registry.errors import NotFound

EPOCH_MS = 1_735_689_600_000  # 2025-01-01T00:00:00Z
RANDOM_BITS = 22
ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"  # Crockford's base 32: no i, l, o, u
LENGTH = 13
_TWO = [first + second for first in ALPHABET for second in ALPHABET]  # two letters at once: answers hold many ids
_VALUE = {letter: value for value, letter in enumerate(ALPHABET)}

_lock = threading.Lock()
_last = 0


def new_id() -> int:
    """A fresh id, larger than every id this process made before."""
    return new_ids(1)[0]


def new_ids(count: int) -> range:
    """As many fresh ids, ascending."""
    global _last
    fresh = ((time.time_ns() // 1_000_000 - EPOCH_MS) << RANDOM_BITS) | secrets.randbits(RANDOM_BITS)
    with _lock:
        first = fresh if fresh > _last else _last + 1
        _last = first + count - 1
        return range(first, first + count)


def to_text(number: int) -> str:
    """13 characters, which sort as the numbers do."""
    two, rest = _TWO, number
    return (
        f"{ALPHABET[rest >> 60]}{two[rest >> 50 & 1023]}{two[rest >> 40 & 1023]}{two[rest >> 30 & 1023]}"
        f"{two[rest >> 20 & 1023]}{two[rest >> 10 & 1023]}{two[rest & 1023]}"
    )


def from_text(text: str) -> int | None:
    """The number behind an id, or None where the text cannot be one."""
    if not isinstance(text, str) or len(text) != LENGTH:
        return None
    number = 0
    for letter in text:
        value = _VALUE.get(letter)
        if value is None:
            return None
        number = number << 5 | value
    return number if number < 1 << 63 else None


def id_or(text: str, missing: type[NotFound], **extras: Any) -> int:
    """The number behind an id of a request; text that is no id names nothing, so it is simply not found."""
    number = from_text(text)
    if number is None:
        raise missing(f"No such id: {text[:40]!r}. An id has {LENGTH} letters and digits.", **extras)
    return number
