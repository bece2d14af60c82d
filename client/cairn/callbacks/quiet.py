"""What every callback keeps to: it never raises into training."""

import functools
import logging
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_log = logging.getLogger("cairn")
_told: set[str] = set()


def quiet(hook: F) -> F:
    """A hook whose faults are warned of, each kind once, and go no further."""

    @functools.wraps(hook)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            return hook(*arguments, **named)
        except Exception as fault:
            text = f"{hook.__qualname__}: {type(fault).__name__}: {fault}"
            if text not in _told:
                _told.add(text)
                _log.warning("cairn: the callback could not record: %s", text)
            return None

    return call  # type: ignore[return-value]


def numbers_of(given: Any) -> dict[str, Any]:
    """Of a mapping, what is a number or a tensor with one."""
    found = {}
    for name, value in dict(given or {}).items():
        if isinstance(value, bool):
            continue
        if isinstance(value, (int, float)) or callable(getattr(value, "item", None)):
            found[str(name)] = value
    return found
