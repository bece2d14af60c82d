"""Refused values in our words: a JSON pointer into what was sent, and what was expected there."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from pydantic_core import ErrorDetails

from registry.errors import FieldError
from registry.strict_json import escape

PATTERNS: Final[dict[str, str]] = {
    r"^[^\x00]*$": "expected text without NUL",
    r"^[^\x00-\x1f\x7f]+$": "expected text without control characters",
    r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$": "expected a name: not blank, no control characters",
    r"^[A-Za-z0-9._-]+$": "expected letters, digits, dots, underscores and hyphens only",
    r"^[A-Za-z0-9._-]{1,128}$": "expected 1 to 128 letters, digits, dots, underscores and hyphens",
    r"^[A-Za-z0-9+/=:._-]+$": "expected a digest: letters, digits and +/=:._-",
    r"^[A-Za-z0-9._-]{1,128}/[A-Za-z0-9._-]{1,128}$": 'expected "project/name"',
    r"^\d{1,7}(-\d{1,7})?(,\d{1,7}(-\d{1,7})?)*$": 'expected ranks such as "0-3,8"',
    r"^[a-z0-9](-?[a-z0-9])*$": "expected lower-case words joined by hyphens, such as gpu-memory",
    r"^SIG[A-Z0-9+-]{1,20}$": "expected a signal's name, such as SIGKILL",
    "^[0-9a-f]{32,128}$": "expected 32 to 128 hexadecimal digits in lower case",
}

# What the validation library calls a mistake, and what we say was expected.
EXPECTED: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "missing": lambda _: "required, but missing",
    "extra_forbidden": lambda _: "unknown field; the API's description names those that exist",
    "string_type": lambda _: "expected text",
    "int_type": lambda _: "expected a whole number",
    "int_from_float": lambda _: "expected a whole number",
    "int_parsing": lambda _: "expected a whole number",
    "int_parsing_size": lambda _: "expected a whole number of at most 64 bits",
    "int_from_float_size": lambda _: "expected a whole number of at most 64 bits",
    "float_type": lambda _: "expected a number",
    "float_parsing": lambda _: "expected a number",
    "bool_type": lambda _: "expected true or false",
    "bool_parsing": lambda _: "expected true or false",
    "dict_type": lambda _: "expected an object",
    "model_type": lambda _: "expected an object",
    "model_attributes_type": lambda _: "expected an object",
    "list_type": lambda _: "expected an array",
    "none_required": lambda _: "expected null",
    "greater_than": lambda context: f"expected more than {context['gt']}",
    "greater_than_equal": lambda context: f"expected {context['ge']} or more",
    "less_than": lambda context: f"expected less than {context['lt']}",
    "less_than_equal": lambda context: f"expected {context['le']} or less",
    "string_too_short": lambda context: f"expected at least {context['min_length']} character(s)",
    "string_too_long": lambda context: f"expected at most {context['max_length']} characters",
    "too_long": lambda context: f"expected at most {context['max_length']} entries",
    "too_short": lambda context: f"expected at least {context['min_length']} entries",
    "literal_error": lambda context: f"expected one of {context['expected']}",
    "string_pattern_mismatch": lambda context: PATTERNS.get(
        context["pattern"], f"expected text of the form {context['pattern']}"
    ),
}

# A whole value is of another type: nothing can be wrong inside it, unless another shape was meant.
_OTHER_TYPES: Final = frozenset(("dict_type", "model_type", "model_attributes_type", "list_type", "string_type"))


def field_errors(
    errors: Iterable[ErrorDetails],
    value: Any = None,
    *,
    prefix: str = "",
    unknown: Callable[[str], str] | None = None,
) -> tuple[FieldError, ...]:
    """The errors by pointer, in order. Where several shapes were possible, their expectations are joined by 'or'.

    `unknown` says of a pointer to an unknown field what was expected instead.
    """
    found: dict[str, list[str]] = {}
    placed = [(_pointer(error["loc"], value), error) for error in errors]
    inside = {pointer[:at] for pointer, _ in placed for at, letter in enumerate(pointer) if letter == "/"}
    for pointer, error in placed:
        if error["type"] in _OTHER_TYPES and pointer in inside:
            continue  # of the shapes that are possible here, one was right and is wrong further in
        said = found.setdefault(prefix + pointer, [])
        message = unknown(pointer) if unknown and error["type"] == "extra_forbidden" else _expectation(error)
        if message not in said:
            said.append(message)
    return tuple(FieldError(pointer, _joined(messages)) for pointer, messages in found.items())


def _pointer(location: Sequence[str | int], value: Any) -> str:
    """The parts of a location that lead through what was sent. The library also names the shapes that it tried."""
    if value is None and location[:1] == ("body",):  # of a form: its fields are pointed at as those of a JSON body
        location = location[1:]
    pointer, here = "", value
    for at, part in enumerate(location):
        last = at == len(location) - 1
        if isinstance(here, dict) and (part in here or (last and isinstance(part, str) and not _is_shape(part))):
            pointer, here = f"{pointer}/{escape(str(part))}", here.get(part)
        elif isinstance(here, list) and isinstance(part, int) and 0 <= part < len(here):
            pointer, here = f"{pointer}/{part}", here[part]
        elif value is None:  # query parameters and form fields: there is no tree to walk
            pointer = f"{pointer}/{escape(str(part))}"
    return pointer


def _is_shape(part: str) -> bool:
    return not part.replace("_", "").isalnum() or part[:1].isupper()


def _expectation(error: ErrorDetails) -> str:
    known = EXPECTED.get(error["type"])
    if known is not None:
        return known(error.get("ctx", {}))
    message = error["msg"].removeprefix("Value error, ")
    return message[:1].lower() + message[1:]


def _joined(messages: Sequence[str]) -> str:
    first, *others = messages
    return ", or ".join([first, *(other.removeprefix("expected ") for other in others)])
