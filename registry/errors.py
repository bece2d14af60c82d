"""What can go wrong, in five kinds. Leaves live beside the code that raises them.

A leaf has a stable `code` (it becomes the problem type `/problems/<code>`), a `title`, and a message that
names the ids and the next move. The domain knows nothing of HTTP statuses: `api.problems` maps kinds to them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class FieldError:
    """One refused value: where it stands (a JSON pointer, '' for the whole) and what was expected there."""

    pointer: str
    message: str


class RegistryError(Exception):
    """Base of every error that the registry raises on purpose."""

    code: ClassVar[str] = "registry-error"
    title: ClassVar[str] = "The registry could not do that"

    def __init__(self, message: str, *, errors: Sequence[FieldError] = (), **extras: Any) -> None:
        super().__init__(message)
        self.message = message
        self.errors = tuple(errors)
        self.extras = extras  # further members of the problem document


class NotFound(RegistryError):
    code = "not-found"
    title = "Not found"


class Conflict(RegistryError):
    code = "conflict"
    title = "In conflict with what is recorded"


class Invalid(RegistryError):
    """A well-formed request whose values cannot be accepted; `errors` names each."""

    code = "invalid"
    title = "A value was refused"


class Malformed(Invalid):
    """A request that could not be read at all: a syntax error, answered 400 rather than 422."""

    code = "malformed"
    title = "The request could not be read"


class Forbidden(RegistryError):
    code = "forbidden"
    title = "Not allowed"


class Unavailable(RegistryError):
    code = "unavailable"
    title = "Not available just now"
    retry_after_seconds: ClassVar[int] = 5


def every_leaf() -> list[type[RegistryError]]:
    """Each error class that is imported by now, for the documentation and the test that walks them."""
    found: list[type[RegistryError]] = []
    todo: list[type[RegistryError]] = [RegistryError]
    while todo:
        for leaf in todo.pop().__subclasses__():
            found.append(leaf)
            todo.append(leaf)
    return found
