"""Cursors: opaque text that says where the next page starts, good only for the query and caller it was made for."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, Final, TypeVar

from registry.keyset import InvalidCursor
from registry.types import INT64_MAX

Row = TypeVar("Row")

MAX_LENGTH: Final = 32_000  # characters; the values of a page's last row, of which a text may be long
_TEXT = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def encode_cursor(values: Sequence[Any], *query: str | int | None) -> str:
    """A cursor of [A-Za-z0-9_-] that holds plain values. `query`: what it is bound to: filter, order, caller's id."""
    body = json.dumps([_digest(query), list(values)], separators=(",", ":"))
    return base64.urlsafe_b64encode(body.encode()).rstrip(b"=").decode()


def decode_cursor(cursor: str, *query: str | int | None) -> list[Any]:
    """The values again; what they may be, the list that they belong to checks. Raises InvalidCursor."""
    digest, values = _read(cursor)
    if digest != _digest(query):
        raise InvalidCursor(
            "The cursor was made for another filter, order or caller. Repeat the query it came from, or start again "
            "without a cursor."
        )
    return values


def one_page(
    rows: Sequence[Row], limit: int, place: Callable[[Row], list[Any]], *query: str | int | None
) -> tuple[Sequence[Row], str | None]:
    """(the rows of a page, the cursor of the next) from one row more than a page has; `place` gives a row's values."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], encode_cursor(place(rows[limit - 1]), *query)


def part_of(
    rows: Sequence[Row],
    limit: int | None,
    cursor: str | None,
    place: Callable[[Row], list[Any]],
    *query: str | int | None,
) -> tuple[Sequence[Row], str | None]:
    """(the rows of a page, the cursor of the next) of a list that is read whole; all of it where no limit is asked.

    For lists whose rows stay once they are there. Raises InvalidCursor.
    """
    if cursor is not None:
        after = decode_cursor(cursor, *query)
        at = next((at for at, row in enumerate(rows) if place(row) == after), None)
        if at is None:
            raise InvalidCursor("The cursor does not belong to this list. Start again without one.")
        rows = rows[at + 1 :]
    return one_page(rows, len(rows) if limit is None else limit, place, *query)


def part_after(
    rows: Sequence[Row],
    limit: int | None,
    cursor: str | None,
    place: Callable[[Row], list[Any]],
    *query: str | int | None,
) -> tuple[Sequence[Row], str | None]:
    """`part_of` for rows that come and go: by their places, those after the cursor's. Raises InvalidCursor."""
    rows = sorted(rows, key=place)
    if cursor is not None:
        after = decode_cursor(cursor, *query)
        try:
            rows = [row for row in rows if place(row) > after]
        except TypeError:  # a cursor that somebody made up
            raise InvalidCursor("The cursor does not belong to this list. Start again without one.") from None
    return one_page(rows, len(rows) if limit is None else limit, place, *query)


def text_after(cursor: str | None, *query: str | int | None) -> str | None:
    """The text that a page goes on after. Raises InvalidCursor."""
    match decode_cursor(cursor, *query) if cursor is not None else None:
        case None:
            return None
        case [str(text)]:
            return text
    raise InvalidCursor("The cursor does not belong to this list. Start again without one.")


def id_after(cursor: str | None, *query: str | int | None) -> int | None:
    """The id that a page goes on after. Raises InvalidCursor."""
    match decode_cursor(cursor, *query) if cursor is not None else None:
        case None:
            return None
        case [int(number)] if 0 <= number <= INT64_MAX:
            return number
    raise InvalidCursor("The cursor does not belong to this list. Start again without one.")


def _digest(query: Sequence[str | int | None]) -> str:
    return sha256(json.dumps(query).encode()).hexdigest()[:24]


def _read(cursor: str) -> tuple[str, list[Any]]:
    if len(cursor) <= MAX_LENGTH and _TEXT.fullmatch(cursor):
        try:
            body = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
        except (ValueError, binascii.Error, RecursionError):  # ValueError: no JSON, no UTF-8, too many digits
            body = None
        match body:
            case [str(digest), list(values)]:
                return digest, values
    raise InvalidCursor("The cursor is damaged. Send `next_cursor` as it was received, or start again without one.")
