"""YAML by PyYAML's safe loader: nothing is constructed but plain values, and a key that stands twice is noted.

Before a document is built, its events are counted: nesting, and how far aliases unfold, are bounded. Numbers such as
`1e-4`, which YAML 1.1 takes for text because they lack a dot, are read as the numbers that they are in YAML 1.2. What
a tag would make (`!!python/object`, an application's own) is never made: the plain value is kept and noted, or, where
the tag would run something, left out.
"""

import re
from datetime import date
from typing import Any

import yaml

from cairn.configs.shapes import MAX_DEPTH, MAX_VALUES, Reading, joined, written
from cairn.formats.refusals import Refused

PLAIN_TAG = "tag:yaml.org,2002:"
RUNS_CODE = re.compile(r"tag:yaml\.org,2002:python/(?:object|name|module)")
FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)|[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
INDENT_TABS = re.compile(r"^[ ]*\t[ \t]*", re.MULTILINE)
_LEFT_OUT = object()
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str, reading: Reading) -> Any:
    """The first document. Raises `Refused` with the place of a mistake."""
    try:
        return _read(text, reading)
    except yaml.YAMLError as fault:
        if "cannot start any token" not in str(fault) or not INDENT_TABS.search(text):
            raise Refused(f"The file is no YAML: {_place(fault)}.") from None
    try:
        # Trainers' own readers take tabs at the start of a line; YAML does not.
        values = _read(INDENT_TABS.sub(lambda found: found[0].replace("\t", "  "), text), reading)
    except yaml.YAMLError as fault:
        raise Refused(f"The file is no YAML: {_place(fault)}.") from None
    reading.note("", "lines are indented by tabs, which YAML does not allow; they were read as spaces")
    return values


def _read(text: str, reading: Reading) -> Any:
    documents = _check_events(text)
    if documents > 1:
        reading.note("", f"the file holds {documents} documents; the first one was read")
    loader = _Loader(text)
    try:
        node = loader.get_node() if loader.check_node() else None
        return None if node is None else _Builder(loader, reading).build(node, "")
    except RecursionError:
        raise Refused(f"The config is nested more than {MAX_DEPTH} deep, or contains itself.") from None
    finally:
        loader.dispose()


def _check_events(text: str) -> int:
    """How many documents there are. Raises `Refused` for what is nested too deep or too long, before it is built."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=_Loader)):
        documents += isinstance(event, yaml.DocumentStartEvent)
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            raise Refused(f"The config is nested more than {MAX_DEPTH} deep.")
        if count > 2 * MAX_VALUES:
            raise Refused(f"The config holds more than {MAX_VALUES:,} values.")
    return documents


def _place(fault: yaml.YAMLError) -> str:
    mark = getattr(fault, "problem_mark", None)
    problem = getattr(fault, "problem", None) or str(fault).split("\n")[0]
    return f"{problem} at line {mark.line + 1}, column {mark.column + 1}" if mark else str(problem)[:200]


class _Builder:
    """Plain values of nodes. An alias is built once for each place, within the bounds of a config."""

    def __init__(self, loader: Any, reading: Reading) -> None:
        self._loader, self._reading = loader, reading
        self._left = MAX_VALUES

    def build(self, node: yaml.Node, path: str, depth: int = 0) -> Any:
        self._left -= 1
        if self._left < 0:
            raise Refused(f"The config holds more than {MAX_VALUES:,} values, its aliases unfolded.")
        if depth > MAX_DEPTH:
            raise Refused(f"The config is nested more than {MAX_DEPTH} deep, or contains itself.")
        if RUNS_CODE.match(node.tag):
            self._reading.note(path, f"the tag {_tag(node)} would make an object of a program; it was left out")
            return _LEFT_OUT
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            self._note_tag(node, path, "seq")
            items = (self.build(each, joined(path, str(at)), depth + 1) for at, each in enumerate(node.value))
            return [item for item in items if item is not _LEFT_OUT]
        return self._scalar(node, path)

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> Any:
        self._note_tag(node, path, "map", "set", "omap")
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == f"{PLAIN_TAG}merge":
                for base in value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]:
                    values = self.build(base, path, depth + 1)
                    merged = {**values, **merged} if isinstance(values, dict) else merged
                continue
            key = self._key(key_node, path)
            value = self.build(value_node, joined(path, key), depth + 1)
            if value is _LEFT_OUT:
                continue
            if key in own and repr(own[key]) != repr(value):
                self._reading.twice(joined(path, key), value)
            own[key] = value
        return {**merged, **own}

    def _key(self, node: yaml.Node, path: str) -> str:
        """Keys are text in JSON: `1`, `null` and `true` become what they look like in the file."""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        self._reading.note(path, "a key is itself a list or an object; it was read as text")
        return str(yaml.serialize(node)).strip()[:200]

    def _scalar(self, node: yaml.Node, path: str) -> Any:
        assert isinstance(node, yaml.ScalarNode)
        text = node.value
        kind = node.tag.removeprefix(PLAIN_TAG)
        plain = not node.style
        try:
            if kind == "float" or (plain and kind == "str" and FLOAT.fullmatch(text)):
                return _float(text)
            if kind == "timestamp":
                return text
            if kind == "binary":
                self._reading.note(path, "binary data; it was left out")
                return _LEFT_OUT
            if kind in ("int", "bool", "null", "str"):
                value = self._loader.construct_object(node)
                return value.isoformat() if isinstance(value, date) else value
        except (ValueError, OverflowError, LookupError, yaml.YAMLError) as fault:  # `!!int ""` is none
            self._reading.note(path, f"{str(text)[:40]!r} was read as text: {str(fault).splitlines()[0][:100]}")
            return text
        self._note_tag(node, path)
        return text

    def _note_tag(self, node: yaml.Node, path: str, *known: str) -> None:
        if node.tag.removeprefix(PLAIN_TAG) not in known:
            self._reading.note(path, f"the tag {_tag(node)} is not interpreted; the plain value was kept")


def _tag(node: yaml.Node) -> str:
    return str(node.tag).replace(PLAIN_TAG, "!!")[:80]


def _float(text: str) -> float:
    bare = text.replace("_", "").lower()
    if bare.lstrip("+-") in (".inf", ".nan"):
        return float(bare.replace(".", ""))
    if ":" in bare:  # base 60, as YAML 1.1 has it
        raise ValueError("a number in base 60")
    return written(bare.removeprefix("+"))
