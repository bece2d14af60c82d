"""How values travel: JSON without non-finite numbers, times in UTC with `Z`."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timezone
from pathlib import PurePath
from typing import Any

from cairn.errors import Invalid
from cairn.numbers import number_to_wire

MAX_DEPTH = 200
FRACTION = re.compile(r"\.\d+")


def encode(value: Any) -> bytes:
    """JSON of `value`; raises `Invalid` with the place of what cannot be sent."""
    return json.dumps(_plain(value, ()), allow_nan=False, separators=(",", ":")).encode()


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


def _plain(value: Any, place: tuple[str, ...]) -> Any:
    """`value` in JSON's own types, recursively. Numbers of numpy and torch become Python's."""
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        return number_to_wire(float(value))
    if len(place) > MAX_DEPTH:
        raise _refused(place[:5], f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, Mapping):
        return {_key(key, place): _plain(each, (*place, str(key))) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, (*place, str(index))) for index, each in enumerate(value)]
    return _scalar(value, place)


def _scalar(value: Any, place: tuple[str, ...]) -> Any:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise _refused(place, f"the time {value.isoformat()} has no zone; use datetime.now(timezone.utc)")
        return value.astimezone(timezone.utc).isoformat().replace("+00:00", "Z")
    if isinstance(value, (date, PurePath)):
        return str(value)
    if callable(getattr(value, "tolist", None)):  # numpy and torch, scalars and arrays alike
        return _plain(value.tolist(), place)
    if callable(getattr(value, "to_wire", None)):
        return _plain(value.to_wire(), place)
    raise _refused(place, f"a {type(value).__name__} cannot be sent as JSON")


def _key(key: Any, place: tuple[str, ...]) -> str:
    if not isinstance(key, str):
        raise _refused(place, f"the key {key!r} is no text")
    return key


def _refused(place: tuple[str, ...], message: str) -> Invalid:
    pointer = "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in place)
    return Invalid(f"Not sent: {message} (at {pointer or 'the top'}).", code="not-sendable")
