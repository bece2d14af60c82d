"""Columns of rows as PostgreSQL array literals; the driver writes its own arrays element by element, far slower."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

NULL = "NULL"


def array_literal(values: Sequence[Any]) -> str:
    """`{1,2,NULL}` for numbers, texts, times, bytes or booleans; all of one kind, None among them."""
    kind = next((type(value) for value in values if value is not None), None)
    if kind is None:
        return "{" + ",".join([NULL] * len(values)) + "}"
    write = _writer(kind)
    return "{" + ",".join([NULL if value is None else write(value) for value in values]) + "}"


def _writer(kind: type[Any]) -> Callable[[Any], str]:
    if issubclass(kind, bool):
        return lambda value: "t" if value else "f"
    if issubclass(kind, int | float):
        return repr  # of a float: the shortest text that reads back as the same number
    if issubclass(kind, datetime):
        return lambda value: f'"{value.isoformat()}"'
    if issubclass(kind, bytes):
        return lambda value: f'"\\\\x{value.hex()}"'
    return _quoted


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
