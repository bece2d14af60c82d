"""Protocol buffers on the wire, as far as reading W&B's records needs them: numbers, and fields with a length.

Source: the encoding that protobuf.dev/programming-guides/encoding describes.
"""

from collections.abc import Iterator

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
Value = int | bytes


class Malformed(ValueError):
    """Bytes that are no message."""


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field: a whole number, or the bytes of a text, a message or a fixed-size number."""
    place, end = 0, len(data)
    while place < end:
        tag = data[place]
        if tag < 0x80:
            place += 1
        else:
            tag, place = _varint(data, place)
        kind = tag & 7
        if kind == _LENGTH:
            if place < end and data[place] < 0x80:
                size, place = data[place], place + 1
            else:
                size, place = _varint(data, place)
        elif kind == _VARINT:
            value, place = _varint(data, place)
            yield tag >> 3, value
            continue
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if kind == _EIGHT_BYTES else 4
        else:
            raise Malformed(f"a field of the unknown kind {kind}")
        if place + size > end:
            raise Malformed("a field that is longer than its message")
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(data) or shift > 63:
            raise Malformed("a number that does not end")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (2**64 - 1), place
        shift += 7


def signed(value: Value) -> int:
    """A number of type int32 or int64: negative ones are written as 64 bits."""
    number = whole(value)
    return number - 2**64 if number >= 2**63 else number


def whole(value: Value) -> int:
    if not isinstance(value, int):
        raise Malformed("bytes where a number belongs")
    return value


def message(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise Malformed("a number where a message belongs")
    return value


def text(value: Value) -> str:
    """Raises Malformed (a UnicodeDecodeError is a ValueError too) for what is no text."""
    return message(value).decode("utf-8")
