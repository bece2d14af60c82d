"""Where in a JSON text something lies that no parser gets to: found by its brackets alone."""

import re
from typing import Final

_MARKS: Final = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"\s*(:?)|[][{},]', re.DOTALL)


def too_deep_at(text: str, limit: int) -> tuple[str, int]:
    """(JSON pointer of the field, character) where a text is nested deeper than `limit` levels.

    The field is the outermost one that has a name: `/config`, or `/7/config` in a list.
    """
    path: list[str | int | None] = []  # of each open object its last key, of each open list its index
    for mark in _MARKS.finditer(text):
        match mark[0]:
            case "{" | "[" as bracket:
                if len(path) == limit:
                    return _pointer(path), mark.start()
                path.append(0 if bracket == "[" else None)
            case "}" | "]":
                del path[-1:]
            case ",":
                if path and isinstance(path[-1], int):
                    path[-1] += 1
            case _ if mark[2] and path:
                path[-1] = mark[1]
    return "", len(text)


def _pointer(path: list[str | int | None]) -> str:
    named = next((at for at, part in enumerate(path) if isinstance(part, str)), None)
    parts = path[: named + 1] if named is not None else []
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)
