"""Paging by the last row's values instead of an offset: a page stays right while rows arrive and go.

Missing and non-finite values are NULL here and come last in both directions. The last key of every list is one
that no two rows share, so the order is total.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar, Final

from sqlalchemy import BigInteger, Boolean, Double, String, and_, false, literal, or_, tuple_

from registry.db import UtcTime, from_micros, to_micros
from registry.errors import Malformed
from registry.types import INT64_MAX

MAX_MICROS: Final = to_micros(datetime.fromisoformat("9999-12-31T23:59:59Z"))
MIN_MICROS: Final = to_micros(datetime.fromisoformat("0001-01-01T00:00:00Z"))


class InvalidCursor(Malformed):
    code: ClassVar[str] = "invalid-cursor"
    title: ClassVar[str] = "The cursor could not be read"


class KeyType(StrEnum):
    INTEGER = "integer"
    NUMBER = "number"
    TEXT = "text"
    TIME = "time"
    BOOLEAN = "boolean"


_SQL_TYPES: Final[dict[KeyType, Any]] = {
    KeyType.INTEGER: BigInteger(),
    KeyType.NUMBER: Double(),
    KeyType.TEXT: String(),
    KeyType.TIME: UtcTime(),
    KeyType.BOOLEAN: Boolean(),
}


@dataclass(frozen=True, slots=True)
class Key:
    """One expression of an ORDER BY."""

    expression: Any
    type: KeyType
    descending: bool = False
    nullable: bool = True

    @property
    def clause(self) -> Any:
        """NULLS LAST only where there can be NULLs: PostgreSQL would not use its index for the others."""
        ordered = self.expression.desc() if self.descending else self.expression.asc()
        return ordered.nulls_last() if self.nullable else ordered

    def bound(self, value: Any) -> Any:
        return literal(value, _SQL_TYPES[self.type])


def after(keys: Sequence[Key], values: Sequence[Any]) -> Any:
    """The condition of every row that comes after the row with these values."""
    pairs = list(zip(keys, values, strict=True))
    tail = 2 if _run_together(keys[-2:]) else 1
    condition = _together(pairs[-tail:])
    for key, value in reversed(pairs[:-tail]):
        condition = or_(_beyond(key, value), and_(_same(key, value), condition))
    if len(keys) > tail and not keys[0].nullable:
        return and_(_from(keys[0], values[0]), condition)  # lets an index start at the place
    return condition


def _run_together(keys: Sequence[Key]) -> bool:
    return len(keys) == 2 and len({key.descending for key in keys}) == 1 and not any(key.nullable for key in keys)


def _together(pairs: Sequence[tuple[Key, Any]]) -> Any:
    """Keys that run the same way are compared as one row, which an index can seek however many rows tie."""
    if len(pairs) == 1:
        return _beyond(*pairs[0])
    row = tuple_(*(key.expression for key, _ in pairs))
    bound = tuple_(*(key.bound(value) for key, value in pairs))
    return row < bound if pairs[0][0].descending else row > bound


def _beyond(key: Key, value: Any) -> Any:
    if value is None:
        return false()
    beyond = key.expression < key.bound(value) if key.descending else key.expression > key.bound(value)
    return or_(beyond, key.expression.is_(None)) if key.nullable else beyond


def _same(key: Key, value: Any) -> Any:
    return key.expression.is_(None) if value is None else key.expression == key.bound(value)


def _from(key: Key, value: Any) -> Any:
    return key.expression <= key.bound(value) if key.descending else key.expression >= key.bound(value)


def to_plain(values: Sequence[Any]) -> list[Any]:
    """The values of a row's keys as JSON can carry them."""
    return [to_micros(value) if isinstance(value, datetime) else value for value in values]


def from_plain(keys: Sequence[Key], plain: Sequence[Any]) -> list[Any]:
    """The values again. Whoever holds a cursor may have changed it, so each is checked against its key."""
    if len(plain) != len(keys):
        raise InvalidCursor("The cursor belongs to another order. Start again without a cursor.")
    return [_checked(key, value) for key, value in zip(keys, plain, strict=True)]


def _checked(key: Key, value: Any) -> Any:
    if value is None and key.nullable:
        return None
    match key.type:
        case KeyType.INTEGER if type(value) is int and abs(value) <= INT64_MAX:
            return value
        case KeyType.NUMBER if type(value) in (int, float) and abs(value) <= INT64_MAX:
            return float(value)
        case KeyType.NUMBER if type(value) is float and math.isfinite(value):
            return value
        case KeyType.TEXT if isinstance(value, str) and _storable(value):
            return value
        case KeyType.TIME if type(value) is int and MIN_MICROS <= value <= MAX_MICROS:
            return from_micros(value)
        case KeyType.BOOLEAN if isinstance(value, bool):
            return value
    raise InvalidCursor("The cursor holds a value that its order never has. Start again without a cursor.")


def _storable(text: str) -> bool:
    return not any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in text)
