"""The shape of `cairn.json`, checked field by field before anything is taken from it or written into it."""

import math
import re
from collections.abc import Callable
from typing import Any

from cairn.formats.jsonfile import Repeated, TooLarge
from cairn.numbers import NON_FINITE

NAME = "cairn.json"
# A document of version 2 may also say what its attempt began from and how large its files were; one without is of 1.
VERSION = 2
BEGAN = ("resumed_from", "restart")
SINCE_2 = (*BEGAN, "bytes", "file_count")
# Scores and the digests of every file of a large checkpoint.
MAX_BYTES = 16 * 1024 * 1024

# How the evidence of a piece begins that is the training's word, not that of the files beside it: they may say
# otherwise, and are no proof against it.
SAID_BY_TRAINING = "said by the training"
CURSOR_RECORDED = "the data cursor recorded with the checkpoint"

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_PROJECT = re.compile(r"[A-Za-z0-9._-]{1,128}")
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z")
_WORD = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DIGEST = re.compile(r"[A-Za-z0-9+/=:._-]{1,256}")
_STATES = ("present", "absent", "unknown")
_PIECES = ("weights", "optimizer", "data_position", "random_state")
_RELATIONS = (
    *("resumed_from", "fine_tuned_from", "merged_from", "resharded_from", "converted_from", "quantised_from"),
    "distilled_from",
)
MAX_STEP = 2**63 - 1
MAX_TEXT = 10_000
MAX_SCORES = 10_000
MAX_FILES = 250_000

# A check answers what is wrong with a value ('' for nothing).
Check = Callable[[Any], str]


def fault_of(document: Any) -> str:
    """What is wrong with a document, with the place; '' for nothing."""
    return _document(document)


def _is(pattern: re.Pattern[str], what: str) -> Check:
    return lambda value: "" if _is_text(value) and pattern.fullmatch(value) else f"is no {what}"


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and not isinstance(value, TooLarge)


def _text(value: Any) -> str:
    if not _is_text(value) or not value or len(value) > MAX_TEXT:
        return "is no text of at most 10,000 characters"
    if any(letter < " " and letter not in "\n\t" for letter in value) or any("\ud800" <= c <= "\udfff" for c in value):
        return "holds a control character or half of a surrogate pair"
    return ""


def _whole(least: int, most: int = MAX_STEP) -> Check:
    return lambda value: "" if type(value) is int and least <= value <= most else f"is no whole number from {least}"


def _number(value: Any) -> str:
    if isinstance(value, str):
        return "" if value in NON_FINITE and not isinstance(value, TooLarge) else "is no number"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "is no number"
    return "" if math.isfinite(value) else "must be written as text where it is not finite"


def _flag(value: Any) -> str:
    return "" if isinstance(value, bool) else "is neither true nor false"


def _one_of(words: tuple[str, ...]) -> Check:
    return lambda value: "" if value in words else f"is none of {', '.join(words)}"


def _some(check: Check) -> Check:
    """The same, or null."""
    return lambda value: "" if value is None else check(value)


def _either(*checks: Check) -> Check:
    def check(value: Any) -> str:
        faults = [each(value) for each in checks]
        return "" if "" in faults else faults[0]

    return check


def _list(check: Check, most: int) -> Check:
    def check_all(value: Any) -> str:
        if not isinstance(value, list) or len(value) > most:
            return f"is no list of at most {most:,}"
        faults = ((index, check(each)) for index, each in enumerate(value))
        return next((_at(str(index), fault) for index, fault in faults if fault), "")

    return check_all


def _map(check: Check, most: int) -> Check:
    def check_all(value: Any) -> str:
        if not isinstance(value, dict) or len(value) > most:
            return f"is no object of at most {most:,} entries"
        if isinstance(value, Repeated):
            return "has a key that stands twice"
        faults = ((key, _text(key) or check(each)) for key, each in value.items())
        return next((_at(key[:80], fault) for key, fault in faults if fault), "")

    return check_all


def _object(fields: dict[str, Check], required: tuple[str, ...] = ()) -> Check:
    def check_all(value: Any) -> str:
        if not isinstance(value, dict):
            return "is no object"
        if isinstance(value, Repeated):
            return "has a key that stands twice"
        for key in value:
            if key not in fields:
                return _at(key[:80], "is not known")
        faults = ((key, fields[key](each)) for key, each in value.items())
        wrong = next((_at(key, fault) for key, fault in faults if fault), "")
        return wrong or next((_at(key, "is missing") for key in required if key not in value), "")

    return check_all


def _at(place: str, fault: str) -> str:
    return f"{place.encode('utf-8', 'backslashreplace').decode()}: {fault}"


def _plain(value: Any) -> str:
    """Any JSON of finite numbers and sound text, without recursion."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            if isinstance(each, Repeated):
                return "has a key that stands twice"
            waiting.extend((*each.keys(), *each.values()))
        elif isinstance(each, list):
            waiting.extend(each)
        elif isinstance(each, TooLarge) or (isinstance(each, float) and not math.isfinite(each)):
            return "holds a number that is not finite"
        elif isinstance(each, str) and any("\ud800" <= letter <= "\udfff" for letter in each):
            return "holds half of a surrogate pair"
        elif not isinstance(each, (str, int, float, bool)) and each is not None:
            return "holds what JSON cannot"
    return ""


def _free(value: Any) -> str:
    return _plain(value) if isinstance(value, dict) else "is no object"


def _path(value: Any) -> str:
    fault = _text(value)
    if fault:
        return fault
    parts = value.split("/")
    return "leads out of the folder" if value.startswith("/") or ".." in parts or "" in parts else ""


_DIGESTED = _object({"algorithm": _is(_WORD, "algorithm"), "value": _is(_DIGEST, "digest")}, ("algorithm", "value"))
_FILE = _object(
    {"path": _path, "bytes": _whole(0), "digest": _some(_either(_is(_DIGEST, "digest"), _DIGESTED))}, ("path",)
)
_PIECE = _object(
    {
        "state": _one_of(_STATES),
        "evidence": _some(_text),
        "position_evidence": _some(_one_of(("state", "counter"))),
        "moment": _some(_text),
    },
    ("state",),
)
_SCORE = _object(
    {
        **dict.fromkeys(("benchmark", "metric"), _text),
        **dict.fromkeys(("version", "harness", "harness_version"), _some(_text)),
        "filter": lambda value: "" if value == "" else _text(value),
        **dict.fromkeys(("value", "stderr"), _some(_number)),
        **dict.fromkeys(("n_samples", "n_shot"), _some(_whole(0))),
        "evaluated_at": _some(_is(_TIME, "time in UTC")),
        "comparability": _free,
    },
    ("benchmark", "value"),
)
_WHICH = {"project": _is(_PROJECT, "project's name"), "attempt": _whole(1), "step": _whole(0)}
_KIND = _one_of(("light", "archive"))
_PARENT = _object(
    {
        "checkpoint_id": _is(_ID, "id"),
        "relation": _one_of(_RELATIONS),
        "of": _object({**_WHICH, "run": _text, "kind": _KIND}, ("project", "run", "attempt", "step", "kind")),
    },
    ("relation",),
)
_LAYOUT = _object(
    {
        **dict.fromkeys(("world_size", "tp", "pp", "dp", "cp", "ep"), _some(_whole(1))),
        "sharding": _some(_text),
        "extra": _free,
    }
)
# What the attempt of the checkpoint loaded; without `run`, of this run.
_POINT = _object({"run": _text, "attempt": _whole(1), "step": _whole(0), "kind": _KIND}, ("step",))
_document = _object(
    {
        "cairn": _whole(1),
        "id": _is(_ID, "id"),
        **_WHICH,
        "run": _object({"id": _is(_ID, "id"), "name": _text}, ("name",)),
        "kind": _KIND,
        "resumed_from": _POINT,
        "restart": _flag,
        **dict.fromkeys(("bytes", "file_count"), _some(_whole(0))),
        **dict.fromkeys(("saved_at", "written_at"), _some(_is(_TIME, "time in UTC"))),
        "pieces": _object(dict.fromkeys(_PIECES, _some(_either(_one_of(_STATES), _PIECE)))),
        "scores": _list(_SCORE, MAX_SCORES),
        "parents": _list(_PARENT, 1_000),
        "layout": _some(_LAYOUT),
        **dict.fromkeys(("format", "format_version", "notes"), _some(_text)),
        "tokens_seen": _some(_whole(0)),
        **dict.fromkeys(("epoch", "loss", "lr", "save_seconds", "stall_seconds"), _some(_number)),
        "metrics": _map(_number, 10_000),
        "tags": _map(_text, 1_000),
        "milestone": _flag,
        "data_version": _some(_either(_text, _free)),
        "data_cursor": _plain,
        **dict.fromkeys(("code", "config", "environment"), _some(_free)),
        "digest": _some(_DIGESTED),
        "manifest": _list(_FILE, MAX_FILES),
    },
    ("cairn", "project", "run", "attempt", "step", "kind"),
)
