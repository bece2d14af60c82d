"""JSON read strictly and written canonically.

The standard reader lets through what cannot be stored faithfully: bare NaN, 1e999, a key given twice (the last one
wins), half a surrogate pair. Each is refused here with its place. Numbers keep the text they were sent as, so that
a configuration comes back as it was written: 1.50 stays 1.50, and 1e2 stays 1e2.
"""

import json
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from json.encoder import encode_basestring as _quoted
from math import isfinite, isinf, isnan
from typing import Any, Final

from registry.errors import FieldError, Malformed
from registry.json_places import too_deep_at

MAX_DEPTH: Final = 64
_WORDS: Final = {None: "null", True: "true", False: "false"}
_IN_OUR_WORDS: Final = {
    "Unexpected UTF-8 BOM (decode using utf-8-sig)": "the text begins with a byte order mark (BOM); send it without",
    "Invalid control character at": "a control character stands in a text; escape it, as \\n or \\u0001",
    "Invalid \\escape": "a backslash begins no escape here",
}
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")


class MalformedJson(Malformed):
    code = "malformed-json"
    title = "The body is not JSON that can be stored"


class Decimal(float):
    """A float that remembers how it was written."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Decimal":
        number = super().__new__(cls, text)
        number.text = text
        return number


@dataclass(frozen=True)
class _Refused:
    """Stands in the parsed tree where something was refused, until its place is known."""

    message: str


class _Reader:
    def __init__(self) -> None:
        self.refused = False

    def refuse(self, message: str) -> Any:
        self.refused = True
        return _Refused(message)

    def constant(self, name: str) -> Any:
        return self.refuse(f"the bare word {name} is not JSON; send the string {json.dumps(name)} instead")

    def number(self, text: str) -> Any:
        number = float(text)
        if repr(number) == text:
            return number
        if isinf(number):
            return self.refuse(
                f'{text[:40]} is beyond what a 64-bit float can hold; send the string "Infinity" if meant'
            )
        return Decimal(text)

    def integer(self, text: str) -> Any:
        return int(text) if len(text) <= 400 else self.refuse(f"a whole number of {len(text)} digits cannot be stored")

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        if len(made) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    made[key] = self.refuse("this key occurs twice in its object")
                seen.add(key)
        return made


def loads(raw: bytes) -> Any:
    """The value of a JSON text in UTF-8. Floats whose text Python would write otherwise are `Decimal`s.

    Raises MalformedJson with the place."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedJson(f"The body is not UTF-8: byte {error.start} ({error.reason}).") from None
    reader = _Reader()
    try:
        value = json.loads(
            text,
            object_pairs_hook=reader.object,
            parse_constant=reader.constant,
            parse_float=reader.number,
            parse_int=reader.integer,
        )
    except json.JSONDecodeError as error:
        words = _IN_OUR_WORDS.get(error.msg) or f"{error.msg[0].lower()}{error.msg[1:]}"
        raise MalformedJson(f"Line {error.lineno}, column {error.colno}: {words}.", position=error.pos) from None
    except RecursionError:
        raise _too_deep(text) from None
    if reader.refused or _HALF_PAIR.search(raw):
        _refuse_what_was_marked(value)
    return value


def _too_deep(text: str) -> MalformedJson:
    pointer, position = too_deep_at(text, MAX_DEPTH)
    message = f"nested deeper than the {MAX_DEPTH} levels that are accepted"
    where = f"At {pointer[:200]}: " if pointer else "The body is "
    return MalformedJson(f"{where}{message}.", errors=[FieldError(pointer, message)], position=position)


def _refuse_what_was_marked(value: Any) -> None:
    found = tuple(_marked(value))
    if found:
        first = found[0]
        raise MalformedJson(f"At {first.pointer or 'the top'}: {first.message}.", errors=found)


def _marked(value: Any) -> Iterator[FieldError]:
    for pointer, item in walk(value):
        if isinstance(item, _Refused):
            yield FieldError(pointer, item.message)
        elif isinstance(item, str) and not _encodes(item):
            yield FieldError(pointer, "the text holds half of a surrogate pair, which is no character")
        elif isinstance(item, dict):
            for key in item:
                if not _encodes(key):
                    yield FieldError(
                        pointer, f"the key {key.encode('utf-8', 'backslashreplace').decode()!r} is no text"
                    )


def _encodes(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def walk(value: Any) -> Iterator[tuple[str, Any]]:
    """Every value in a tree with its JSON pointer (RFC 6901), the root first; without recursion."""
    todo: list[tuple[str, Any]] = [("", value)]
    while todo:
        pointer, item = todo.pop()
        yield pointer, item
        if isinstance(item, dict):
            todo.extend((f"{pointer}/{escape(str(key))}", member) for key, member in reversed(item.items()))
        elif isinstance(item, list):
            todo.extend((f"{pointer}/{index}", item[index]) for index in range(len(item) - 1, -1, -1))


def escape(key: str) -> str:
    """One segment of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def depth_of(value: Any) -> int:
    """How deep objects and lists are nested: 0 for a plain value."""
    deepest, todo = 0, [(value, 0)]
    while todo:
        item, depth = todo.pop()
        if isinstance(item, dict | list):
            deepest = max(deepest, depth + 1)
            members = item.values() if isinstance(item, dict) else item
            todo.extend((member, depth + 1) for member in members if isinstance(member, dict | list))
    return deepest


def canonical(value: Any) -> str:
    """The one text of a value: keys sorted by code point, no spaces, numbers as they were sent, non-finite as strings.

    The value may be at most MAX_DEPTH deep.
    """
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is int:
        return str(value)
    if kind is float:
        return repr(value) if isfinite(value) else f'"{special_name(value)}"'
    if kind is dict:
        return "{" + ",".join([f"{_quoted(key)}:{canonical(value[key])}" for key in sorted(value)]) + "}"
    if value is None or kind is bool:
        return _WORDS[value]
    if isinstance(value, Decimal):
        return value.text
    return _canonical_of_another_type(value)


def _canonical_of_another_type(value: Any) -> str:
    """Subclasses of what JSON knows (enums), other mappings, tuples."""
    if isinstance(value, str):
        return _quoted(str.__str__(value))
    if isinstance(value, float):
        return canonical(float(value))
    if isinstance(value, int):
        return canonical(int(value))
    if isinstance(value, Mapping):
        return canonical(dict(value))
    return "[" + ",".join([canonical(item) for item in value]) + "]"


def special_name(number: float) -> str:
    """How a non-finite number is written on the wire."""
    return "NaN" if isnan(number) else "Infinity" if number > 0 else "-Infinity"


def digest(text: str) -> bytes:
    """SHA-256 of a canonical text."""
    return sha256(text.encode("utf-8")).digest()


def pack(text: str) -> bytes:
    """A canonical text as it is kept in the database."""
    return zlib.compress(text.encode("utf-8"), 6)


def unpack(body: bytes) -> Any:
    """The value behind packed bytes, with every number as it was sent."""
    return loads(zlib.decompress(body))
