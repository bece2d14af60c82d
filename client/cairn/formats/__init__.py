"""Readers of evaluation result files. The format is found by content, never by a file's name.

Standard library only: training hosts and the service both read with these.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cairn.formats import jsonfile, lm_eval_v03
from cairn.formats.evals import EvalFile, EvalScore, Refused, Skipped

__all__ = ["FORMATS", "EvalFile", "EvalScore", "Format", "Refused", "Skipped", "find_format", "read_evals"]


@dataclass(frozen=True)
class Format:
    """One kind of result file: how it is recognised, and how it is read."""

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any, str], EvalFile]


FORMATS = (Format(lm_eval_v03.NAME, lm_eval_v03.matches, lm_eval_v03.read),)


def find_format(content: bytes) -> str | None:
    """The name of the format that `content` has, or None. Raises `Refused` where it cannot be read at all."""
    found = _match(jsonfile.load(content))
    return found.name if found else None


def read_evals(content: bytes, *, format: str = "auto", name: str = "") -> EvalFile:
    """All that a result file says. Raises `Refused` with the reason.

    `name` is the file's name: it never decides what the file is, it can only contradict what stands inside.
    """
    known = {each.name: each for each in FORMATS}
    if format != "auto" and format not in known:
        raise Refused(f"Unknown format {format[:40]!r}. Known: auto, {', '.join(known)}.")
    document = jsonfile.load(content)
    found = _match(document)
    if found is None:
        raise Refused(f"Not a result file of a known format ({', '.join(known)}): {_what_it_is(document)}.")
    if format not in ("auto", found.name):
        raise Refused(f"The file is {found.name}, not {format}.")
    return found.read(document, name)


def _match(document: Any) -> Format | None:
    return next((each for each in FORMATS if each.matches(document)), None)


def _what_it_is(document: Any) -> str:
    """What a person needs to see at once why their file was not taken."""
    if not isinstance(document, dict):
        return f"it holds a JSON {_JSON_NAMES.get(type(document), 'number')}, not an object"
    if lm_eval_v03.is_newer(document):
        return "it looks like a result of lm-evaluation-harness 0.4, which is not read yet"
    keys = ", ".join(repr(key[:40]) for key in list(document)[:6])
    return f"its keys are {keys}" if keys else "it is an empty object"


_JSON_NAMES: dict[type, str] = {list: "array", str: "string", bool: "boolean", type(None): "null"}
