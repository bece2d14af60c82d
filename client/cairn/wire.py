"""How values travel: JSON without non-finite numbers, times in UTC with `Z`, a file's numbers as they were written."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from json.encoder import encode_basestring_ascii as quoted
from pathlib import PurePath
from typing import Any

from cairn.errors import Invalid
from cairn.numbers import Written, number_to_wire

MAX_DEPTH = 200
FRACTION = re.compile(r"\.\d+")


def encode(value: Any) -> bytes:
    """JSON of `value`; raises `Invalid` with the place of what cannot be sent."""
    return _text(value, ()).encode()


def decode(body: bytes) -> Any:
    """The value of a JSON answer. Raises ValueError."""
    return json.loads(body)


def moment(value: Any) -> datetime | None:
    """A time of an answer, aware and in UTC; None where there is none."""
    if not isinstance(value, str):
        return None
    try:
        # Python 3.10 reads neither `Z` nor a fraction of other than 3 or 6 digits.
        six_digits = FRACTION.sub(lambda fraction: fraction[0][:7].ljust(7, "0"), value, count=1)
        found = datetime.fromisoformat(six_digits.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found.astimezone(timezone.utc) if found.tzinfo else None


def _text(value: Any, place: tuple[str, ...]) -> str:
    """`value` as JSON, recursively: Python's own encoder cannot write a number as somebody else wrote it."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, int):
        return int.__repr__(value)
    if isinstance(value, float):
        return value.text if isinstance(value, Written) else _number(float(value))
    if len(place) > MAX_DEPTH:
        raise _refused(place[:5], f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        parts = (f"{quoted(_key(key, place))}:{_text(each, (*place, str(key)))}" for key, each in value.items())
        return "{" + ",".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_text(each, (*place, str(index))) for index, each in enumerate(value)) + "]"
    return _scalar(value, place)


def _number(value: float) -> str:
    known = number_to_wire(value)
    return quoted(known) if isinstance(known, str) else repr(known)


def _scalar(value: Any, place: tuple[str, ...]) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise _refused(place, f"the time {value.isoformat()} has no zone; use datetime.now(timezone.utc)")
        return quoted(value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z"))
    if isinstance(value, (date, PurePath)):
        return quoted(str(value))
    if callable(getattr(value, "tolist", None)):  # numpy and torch, scalars and arrays alike
        return _text(value.tolist(), place)
    if callable(getattr(value, "to_wire", None)):
        return _text(value.to_wire(), place)
    raise _refused(place, f"a {type(value).__name__} cannot be sent as JSON")


def _key(key: Any, place: tuple[str, ...]) -> str:
    if not isinstance(key, str):
        raise _refused(place, f"the key {key!r} is no text")
    return key


def _refused(place: tuple[str, ...], message: str) -> Invalid:
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in place)
    return Invalid(f"Not sent: {message} (at {pointer or 'the top'}).", code="not-sendable")
