"""MLflow's words in ours, and back. Pure: nothing is called.

MLflow keeps every parameter as text, infinity as the largest float, and cuts long values without a word; it refuses
some letters in names. Each of these is met here, and said where something may be lost.
"""

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from registry.integrations.shapes import Skipped
from registry.strict_json import MAX_DEPTH, Decimal, depth_of

INFINITY: Final = 1.7976931348623157e308  # what MLflow stores and shows for infinity
PARAM_LIMIT: Final = 6_000  # characters; what is longer is cut there, with an answer of 200
TAG_LIMIT: Final = 8_000
KEY_LIMIT: Final = 250
OWN: Final = "cairn."  # before every tag that we set
OWN_METRIC: Final = "cairn/"  # before every metric
STATES: Final[Mapping[str, str | None]] = {
    "RUNNING": "running",
    "FINISHED": "finished",
    "FAILED": "failed",
    "KILLED": "stopped",
    "SCHEDULED": None,
}
_NUMBER: Final = re.compile(r"-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?")
_WORDS: Final[Mapping[str, Any]] = {
    **{word: value for value, words in ((True, ("true", "True")), (False, ("false", "False"))) for word in words},
    **dict.fromkeys(("None", "null"), None),
}
_BRACKETS: Final = {"[": "]", "{": "}", "(": ")"}
_REFUSED_IN_MODEL: Final = re.compile(r"[/:.%\"'\x00-\x1f\x7f]")
_REFUSED_IN_KEY: Final = re.compile(r"[^A-Za-z0-9_\-. :/]")


def number(value: Any) -> float | None:
    """A metric's value as MLflow sends it: NaN as a word, infinity as the largest float; None where it is none."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return math.copysign(math.inf, found) if abs(found) >= INFINITY else found


def moment(millis: Any) -> datetime | None:
    """A time in milliseconds since 1970; 0 is none."""
    try:
        return datetime.fromtimestamp(int(millis) / 1000, UTC) if int(millis) > 0 else None
    except (TypeError, ValueError, OverflowError, OSError):
        return None


def typed(text: str) -> Any:
    """A parameter's text as the value that was meant: number, yes or no, nothing, list or object; else the text."""
    if text in _WORDS:
        return _WORDS[text]
    if _NUMBER.fullmatch(text) and len(text) <= 60:
        return _number_of(text)
    if text in ("nan", "inf", "-inf", "Infinity", "-Infinity", "NaN"):
        return float(text)
    if len(text) >= 2 and _BRACKETS.get(text[0]) == text[-1] and len(text) < PARAM_LIMIT:
        return _structure(text)
    return text


def _number_of(text: str) -> Any:
    """The number, which keeps how it was written: 1e-4 stays 1e-4."""
    if text.lstrip("-").isdigit():
        return int(text)
    found = Decimal(text)
    return text if math.isinf(found) else float(text) if repr(float(text)) == text else found


def _structure(text: str) -> Any:
    """What JSON or Python's own notation writes; text that is neither stays text."""
    for read in (json.loads, ast.literal_eval):
        try:
            found = _plain(read(text))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
        return found if depth_of(found) < MAX_DEPTH // 2 else text
    return text


def _plain(value: Any) -> Any:
    """Only what JSON can hold. Raises TypeError for other kinds, such as bytes or sets."""
    if isinstance(value, Mapping):
        return {_key(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    if value is None or isinstance(value, str | bool | int | float):
        if isinstance(value, str):
            value.encode("utf-8")  # raises ValueError for half a surrogate pair
        return value
    raise TypeError


def _key(key: Any) -> str:
    if not isinstance(key, str | int | float | bool):
        raise TypeError
    return str(key)


def config_of(params: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], list[Skipped]]:
    """Parameters as a nested configuration, and what cannot be trusted. `a.b` is nested where no `a` stands beside."""
    flat: dict[str, Any] = {}
    doubts = []
    for param in params:
        key, text = str(param.get("key", "")), str(param.get("value", ""))
        if len(text) in (PARAM_LIMIT, 500, 250):
            doubts.append(Skipped(f"param {key}", f"{len(text)} characters long, where MLflow cuts: it may go on"))
        flat[key] = typed(text) if len(text) != PARAM_LIMIT else text
    return nested(flat), doubts


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Dotted keys as objects in objects, where that is safe: no part is empty, and no part is a value of its own."""
    keys = set(flat)
    made: dict[str, Any] = {}
    for key in sorted(flat):
        parts = key.split(".")
        heads = {".".join(parts[:at]) for at in range(1, len(parts))}
        if len(parts) > MAX_DEPTH // 4 or not all(parts) or heads & keys:
            made[key] = flat[key]
            continue
        place = made
        for part in parts[:-1]:
            place = place.setdefault(part, {})
        place[parts[-1]] = flat[key]
    return made


def model_name(text: str) -> str:
    """A name that MLflow accepts for a model."""
    return _REFUSED_IN_MODEL.sub("-", text)[:KEY_LIMIT] or "checkpoint"


def metric_keys(names: Sequence[str]) -> dict[str, str]:
    """A key that MLflow accepts for each name; no two names share one. The key is the name where that is accepted."""
    taken: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (_REFUSED_IN_KEY.search(name) is not None, name)):
        key = plain = _key_of(name)
        count = 1
        while key in taken.values():
            count += 1
            key = f"{plain[: KEY_LIMIT - 8]}_{count}"
        taken[name] = key
    return taken


def _key_of(name: str) -> str:
    """MLflow takes names as paths: none may begin with a slash, or lead upwards."""
    cleaned = _REFUSED_IN_KEY.sub("_", name)
    parts = [part for part in cleaned.split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:KEY_LIMIT] or "_"
