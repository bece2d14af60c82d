"""What is said of a field that a body does not have: the nearest that it has, or that this one cannot be changed."""

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from pydantic import TypeAdapter

UNKNOWN: Final = "unknown field"
_FEW: Final = 8  # fields of an object that are all named where none is near
_BRANCHES: Final = ("anyOf", "oneOf", "allOf")


def said_of(adapter: TypeAdapter[Any], pointer: str, fixed: Collection[str] = ()) -> str:
    """`pointer` leads to the unknown field; `fixed`: fields of the whole that are known and cannot be changed."""
    from registry.filters.errors import did_you_mean

    *path, name = [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]] or [""]
    known = sorted(set(_names_at(_schema_of(adapter), path)))
    if not path and name in fixed:
        return f"cannot be changed once it is recorded; these can: {', '.join(known)}"
    if near := did_you_mean(name, known):
        return f"{UNKNOWN}; the nearest: {near.removeprefix('Did you mean ').removesuffix('?')}"
    if 0 < len(known) <= _FEW:
        return f"{UNKNOWN}; expected {', '.join(known)}"
    return f"{UNKNOWN}; the API's description names those that exist"


@lru_cache(128)
def _schema_of(adapter: TypeAdapter[Any]) -> Mapping[str, Any]:
    return adapter.json_schema()


def _names_at(whole: Mapping[str, Any], path: Collection[str]) -> Iterator[str]:
    """The fields of the objects that may stand at the end of a path through what was sent."""
    places = [*_shapes(whole, whole)]
    for part in path:
        inner = [each for place in places for each in _members(place, part)]
        places = [shape for each in inner for shape in _shapes(each, whole)]
    for place in places:
        yield from place.get("properties", ())


def _shapes(schema: Any, whole: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema with its references followed and its alternatives apart."""
    if not isinstance(schema, Mapping):
        return
    if "$ref" in schema:
        yield from _shapes(whole.get("$defs", {}).get(schema["$ref"].rpartition("/")[2]), whole)
        return
    yield schema
    for branch in _BRANCHES:
        for each in schema.get(branch, ()):
            yield from _shapes(each, whole)


def _members(place: Mapping[str, Any], part: str) -> Iterator[Any]:
    """What may stand there under one name or index."""
    if part.isdigit() and "items" in place:
        yield place["items"]
    if part in place.get("properties", ()):
        yield place["properties"][part]
    elif "additionalProperties" in place:
        yield place["additionalProperties"]
