"""Builds the dataclasses of `cairn.types` from answers: unknown fields are kept aside, missing ones get defaults.

Services are upgraded before trainers are, so a field that this client never heard of is no error; it stays
reachable under `raw`. Each dataclass field names its reader in its metadata.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from cairn import wire
from cairn.errors import ConnectionFailed
from cairn.numbers import number_from_wire

T = TypeVar("T")
Reader = Callable[[Any], Any]


class UnexpectedAnswer(ConnectionFailed):
    """An answer that lacks what this call is for."""


def build(cls: type[T], data: Any) -> T:
    """`data` as `cls`. Raises `UnexpectedAnswer` where a field without default is missing or of a wrong type."""
    if not isinstance(data, dict):
        raise UnexpectedAnswer(f"Expected a {cls.__name__}, got {repr(data)[:80]}. Is this a Cairn service?")
    flat = getattr(cls, "flat", dict)(data)
    values = {}
    for each in dataclasses.fields(cls):  # type: ignore[arg-type]
        if each.name == "raw":
            values["raw"] = data
            continue
        value = each.metadata["read"](flat.get(each.metadata.get("name", each.name)))
        if value is not None:
            values[each.name] = value
        elif each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING:
            raise UnexpectedAnswer(f"The answer has no usable {each.name!r} for a {cls.__name__}.")
    return cls(**values)


def _named(read: Reader) -> Mapping[str, Any]:
    return {"read": read}


def read_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def read_whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def read_flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def read_numbers(value: Any) -> dict[str, float] | None:
    """A mapping of names to numbers, those that are none left out."""
    if not isinstance(value, dict):
        return None
    return {key: found for key, each in value.items() if (found := number_from_wire(each)) is not None}


def read_number_list(value: Any) -> tuple[float, ...] | None:
    """A list of numbers, of the same length: what is none becomes NaN."""
    if not isinstance(value, list):
        return None
    return tuple(math.nan if (found := number_from_wire(each)) is None else found for each in value)


def read_mapping(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def read_texts(value: Any) -> tuple[str, ...] | None:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else None


def read_items(value: Any) -> tuple[Any, ...] | None:
    return tuple(value) if isinstance(value, list) else None


TEXT = _named(read_text)
WHOLE = _named(read_whole)
NUMBER = _named(number_from_wire)
FLAG = _named(read_flag)
MOMENT = _named(wire.moment)
NUMBERS = _named(read_numbers)
NUMBER_LIST = _named(read_number_list)
MAPPING = _named(read_mapping)
TEXTS = _named(read_texts)
ITEMS = _named(read_items)
ANY = _named(lambda value: value)


def one(cls: type[Any]) -> Mapping[str, Any]:
    """A field that holds one `cls`."""
    return _named(lambda value: build(cls, value) if isinstance(value, dict) else None)


def many(cls: type[Any]) -> Mapping[str, Any]:
    """A field that holds a tuple of `cls`."""
    return _named(lambda value: tuple(build(cls, each) for each in value) if isinstance(value, list) else None)
