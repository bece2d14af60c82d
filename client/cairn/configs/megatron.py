"""The arguments that Megatron and its kin print when they start, and the text of an `argparse.Namespace`.

      adam_beta1 ...................................... 0.9
    Namespace(lr=0.001, betas=[0.9, 0.95], dtype=torch.bfloat16, nested=Namespace(a=1))

Values are what Python prints: numbers, booleans, None, lists, tuples and text are read as such by
`ast.literal_eval`, which runs nothing; anything else (`torch.float16`, `<AttnBackend.auto: 5>`) stays text.
"""

import ast
import re
from typing import Any

from cairn.configs.shapes import MAX_DEPTH, Reading, joined, written
from cairn.formats.refusals import Refused

# `arg ... value`, behind what a launcher or a logger may put first: `[default0]:`, ` 0: `, `[2026-01-01 10:00:00] `.
LINE = re.compile(r"(?:.{0,80}?[\]:>|]\s*|\s*)(?P<name>[A-Za-z_][\w.\-]{0,120}) \.{2,}(?: (?P<value>.*))?")
FEW = 3
CALL = re.compile(r"\s*(?:[A-Za-z_][\w.]*\s*=\s*)?(?:argparse\.)?(?:Simple)?Namespace\(")
FLOAT = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
SPECIAL = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
MAX_VALUE = 65_536
OPEN, CLOSE = "([{<", ")]}>"


def is_dump(text: str) -> bool:
    return sum(LINE.fullmatch(line) is not None for line in text.splitlines()) >= FEW


def read_dump(text: str, reading: Reading) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for line in text.splitlines():
        said = LINE.fullmatch(line.rstrip())
        if said is not None:
            _add(found, said["name"], plain(said["value"] or "", reading, said["name"]), "", reading)
    return found


def is_namespace(text: str) -> bool:
    return CALL.match(text) is not None


def read_namespace(text: str, reading: Reading) -> dict[str, Any]:
    """Raises `Refused` where the text is cut short."""
    start = CALL.match(text)
    assert start is not None
    body, end = _inside(text, start.end())
    if end < 0:
        raise Refused("The Namespace(...) has no end: the text is cut short.")
    if text[end + 1 :].strip():
        reading.note("", "text behind the Namespace(...) was not read")
    return _fields(body, "", reading, 0)


def _fields(body: str, path: str, reading: Reading, depth: int) -> dict[str, Any]:
    if depth > MAX_DEPTH:
        raise Refused(f"The config is nested more than {MAX_DEPTH} deep.")
    found: dict[str, Any] = {}
    for part in _split(body):
        name, equals, value = part.partition("=")
        if not equals:
            reading.note(path, f"{part.strip()[:60]!r} is no name=value")
            continue
        own = joined(path, name.strip())
        inner = CALL.match(value)
        if inner and (end := _inside(value, inner.end()))[1] >= 0:
            _add(found, name.strip(), _fields(end[0], own, reading, depth + 1), path, reading)
        else:
            _add(found, name.strip(), plain(value.strip(), reading, own), path, reading)
    return found


def _add(found: dict[str, Any], name: str, value: Any, path: str, reading: Reading) -> None:
    """A dump stands once for each rank in a log: only another value is worth a word."""
    if name in found and repr(found[name]) != repr(value):
        reading.twice(joined(path, name), value)
    found[name] = value


def plain(text: str, reading: Reading, path: str) -> Any:
    """What Python printed, as a value; text where it is none."""
    if text in SPECIAL:
        return SPECIAL[text]
    if re.fullmatch(r"-?\d+", text):
        return int(text) if len(text) <= 300 else text
    if FLOAT.fullmatch(text):
        try:
            return written(text)
        except ValueError as fault:
            reading.note(path, f"{fault}; it was read as text")
            return text
    if len(text) > MAX_VALUE or text[:1] not in "[({'\"-TFN":
        return text
    try:
        return _as_json(ast.literal_eval(text), 0)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text


def _as_json(value: Any, depth: int) -> Any:
    """Lists for tuples and sets, and text for what else JSON does not know."""
    if depth > MAX_DEPTH:
        raise ValueError("too deep")
    if isinstance(value, dict):
        return {key if isinstance(key, str) else repr(key): _as_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_json(each, depth + 1) for each in value]
    if isinstance(value, (set, frozenset)):
        return [_as_json(each, depth + 1) for each in sorted(value, key=repr)]
    return value if value is None or isinstance(value, (str, bool, int, float)) else repr(value)


def _inside(text: str, start: int) -> tuple[str, int]:
    """The text between a bracket that was opened before `start` and its end; -1 where it has none."""
    for at, depth in _depths(text, start):
        if depth < 0:
            return text[start:at], at
    return "", -1


def _split(text: str) -> list[str]:
    """The parts between the commas that stand outside of brackets and quotes."""
    cuts = [at for at, depth in _depths(text, 0) if depth == 0 and text[at] == ","]
    parts = [text[first + 1 : last] for first, last in zip([-1, *cuts], [*cuts, len(text)], strict=True)]
    return [part for part in parts if part.strip()]


def _depths(text: str, start: int) -> list[tuple[int, int]]:
    """Each bracket and comma outside of quotes, with the depth behind it; ends at the first depth below zero."""
    found: list[tuple[int, int]] = []
    depth, quote, at = 0, "", start
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter in OPEN or letter in CLOSE or letter == ",":
            depth += (letter in OPEN) - (letter in CLOSE)
            found.append((at, depth))
            if depth < 0:
                break
        at += 1
    return found
