"""What every group of calls stands on: one way to send, one way to name things."""

from collections.abc import Callable, Iterator
from typing import Any, TypeVar
from urllib.parse import quote

from cairn import wire
from cairn.errors import Invalid
from cairn.reading import UnexpectedAnswer, build
from cairn.transport import Call, Transport, query
from cairn.types import Checkpoint, CheckpointRef, Run, RunRef

API = "/api/v1"
PAGE = 1_000  # items; the most that the service gives at once
T = TypeVar("T")
RunLike = str | Run | RunRef
CheckpointLike = str | CheckpointRef | Checkpoint


class Calls:
    """Holds the connection; the groups of calls derive from it."""

    _transport: Transport

    def _get(self, cls: type[T], path: str, **parameters: Any) -> T:
        return build(cls, self._fetch(path, **parameters))

    def _fetch(self, path: str, **parameters: Any) -> Any:
        return self._transport.send(Call("GET", query(API + path, **parameters), idempotent=True))

    def _every(self, path: str, cls: type[T]) -> tuple[T, ...]:
        """The items of all pages of a list."""
        found: list[T] = []
        cursor: str | None = None
        while True:
            answer = self._fetch(path, limit=PAGE, **given(cursor=cursor))
            found += answer_items(answer, cls)
            cursor = answer.get("next_cursor")
            if cursor is None:
                return tuple(found)

    def _send(self, method: str, path: str, body: Any, *, idempotent: bool) -> Any:
        call = Call(method, API + path, wire.encode(body), idempotent=idempotent)
        return self._transport.send(call)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that the caller gave; None means not given."""
    return {name: value for name, value in fields.items() if value is not None}


def id_of(thing: Any) -> str:
    """The id of a run or checkpoint, ready for a path."""
    text = thing if isinstance(thing, str) else getattr(thing, "id", None)
    if not isinstance(text, str) or not text:
        raise Invalid(f"Expected an id or an object that has one, got {thing!r}.", code="not-sendable")
    return text


def segment(text: str) -> str:
    """A name as one part of a path; `/` and `.` cannot lead elsewhere."""
    if text in ("", ".", ".."):
        raise Invalid(f"{text!r} is no name.", code="not-sendable")
    return quote(text, safe="")


def pages(fetch: Callable[[str | None], Any], limit: int | None) -> Iterator[Any]:
    """The items of page after page, at most `limit` of them."""
    cursor: str | None = None
    left = limit
    while left is None or left > 0:
        page = fetch(cursor)
        items = page.items if left is None else page.items[:left]
        yield from items
        left = None if left is None else left - len(items)
        cursor = page.next_cursor
        if cursor is None:
            return


def literal(value: str | int | float) -> str:
    """A value as the filter language writes it."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def answer_items(answer: Any, cls: type[T]) -> tuple[T, ...]:
    """A list that comes whole, under `items`."""
    items = answer.get("items") if isinstance(answer, dict) else None
    if not isinstance(items, list):
        raise UnexpectedAnswer(f"Expected a list of {cls.__name__}, got {repr(answer)[:80]}.")
    return tuple(build(cls, each) for each in items)
