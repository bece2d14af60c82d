"""Items of history, config and summary: a name or a path of names, and a value as JSON."""

import struct

from cairn.formats.wandb_offline.wire import fields, message, text, whole

# How the fields of an item begin: key, nested_key, and value_json, whose number takes a second byte.
_KEY, _NESTED, _WIDE = 0x0A, 0x12, 0x82
_NAMES = (_KEY, _NESTED)


def read_item(body: bytes) -> tuple[list[str], str]:
    """(names, JSON) of an item of history, config or summary: nearly all that a file holds, so read without detours."""
    place, end, key, path, written = 0, len(body), "", [], ""
    while place < end:
        tag = body[place]
        if tag == _WIDE and end - place > 2 and body[place + 1] == 1:
            place += 1
        elif tag not in _NAMES or end - place < 2:
            return _unusual_item(body)
        size = body[place + 1]
        place += 2
        if size > 0x7F or place + size > end:
            return _unusual_item(body)
        said = body[place : place + size].decode()
        place += size
        if tag == _WIDE:
            written = said
        elif tag == _NESTED:
            path.append(said)
        else:
            key = said
    return path or [key], written


def _unusual_item(body: bytes) -> tuple[list[str], str]:
    """As above, of any item: long ones, and those of the history that carry plain values."""
    key, path, written = "", [], ""
    for number, found in fields(body):
        if number == 1:
            key = text(found)
        elif number == 2:
            path.append(text(found))
        elif number in (8, 16):
            written = text(found)
        elif number == 4:
            written = "true" if found else "false"
        elif number == 5:
            zigzag = whole(found)
            written = str(zigzag >> 1 ^ -(zigzag & 1))
        elif number == 6:
            written = _double(message(found))
    return path or [key], written


def _double(data: bytes) -> str:
    found = struct.unpack("<d", data)[0]
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(found), repr(found))
