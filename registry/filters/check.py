"""Does each term fit its field? Mistakes of type are found at their character, before any SQL is made."""

from datetime import datetime
from functools import lru_cache

from registry import ids
from registry.filters import syntax
from registry.filters.errors import InvalidFilter, did_you_mean
from registry.filters.fields import FieldType, Reference, find_field
from registry.filters.parse import read_filter, read_order
from registry.filters.print import field_to_text
from registry.filters.times import TIME_WORDS, read_time

_NUMERIC = (FieldType.INTEGER, FieldType.NUMBER)
_UNORDERED = (FieldType.BOOLEAN, FieldType.CHOICE, FieldType.ID)
MAX_FIELDS = 100
_EQUALITY = (syntax.Operator.EQUAL, syntax.Operator.NOT_EQUAL)


@lru_cache(256)
def parse_filter(text: str) -> syntax.Node | None:
    """Reads a filter and checks it against the catalogue. None for an empty text; raises InvalidFilter."""
    node = read_filter(text)
    if node is not None:
        for term in syntax.terms_of(node):
            _check_term(term, text)
    return node


@lru_cache(256)
def parse_fields(text: str) -> tuple[syntax.Field, ...]:
    """Reads `loss, scores.gsm8k`: what a list shows of each checkpoint."""
    keys = read_order(text, MAX_FIELDS)
    for key in keys:
        if key.descending:
            raise InvalidFilter("a field that is shown has no direction", text, key.field.place(), ["the name alone"])
        _check_single(key.field, text)
    return tuple(key.field for key in keys)


@lru_cache(256)
def parse_order_by(text: str) -> tuple[syntax.OrderKey, ...]:
    """Reads `scores.gsm8k desc, step`."""
    keys = read_order(text)
    for key in keys:
        _check_single(key.field, text)
    return keys


def _check_single(field: syntax.Field, text: str) -> None:
    if find_field(field, text).spec.some:
        what = f"a checkpoint has any number of {field_to_text(field)}"
        raise InvalidFilter(what, text, field.place(), ["a field with one value"])


def _check_term(term: syntax.Term, text: str) -> None:
    reference = find_field(term.field, text)
    kind = reference.spec.type
    match term:
        case syntax.Flag(field):
            if kind is not FieldType.BOOLEAN:
                after = field.place(len(field.segments) - 1)
                what = f"{field_to_text(field)} is {kind.value} and is no condition by itself"
                raise InvalidFilter(what, text, after, ["a comparison after it", "a field that is true or false"])
        case syntax.Comparison(operator=operator, value=value, place=place):
            if operator not in _EQUALITY:
                _check_ordered(reference, term.field, text, place)
            _check_value(reference, value, text)
        case syntax.Membership(values=values):
            for value in values:
                _check_value(reference, value, text)
        case syntax.Between(low=low, high=high, place=place):
            _check_ordered(reference, term.field, text, place)
            _check_value(reference, low, text)
            _check_value(reference, high, text)
        case syntax.Like(pattern=pattern, place=place):
            if kind not in (FieldType.TEXT, FieldType.ANY):
                what = f"{field_to_text(term.field)} is {kind.value}; 'like' compares text"
                raise InvalidFilter(what, text, place, _operators(reference))
            _check_pattern(pattern, text)
        case syntax.IsNan(place=place):
            if kind not in (FieldType.NUMBER, FieldType.ANY):
                what = f"{field_to_text(term.field)} is {kind.value} and never NaN"
                raise InvalidFilter(what, text, place, _operators(reference))
        case syntax.IsNull():
            pass


def _check_ordered(reference: Reference, field: syntax.Field, text: str, place: int) -> None:
    spec = reference.spec
    if spec.type in _UNORDERED:
        what = f"{field_to_text(field)} is {spec.type.value}, which has no order"
        raise InvalidFilter(what, text, place, _operators(reference))
    if spec.some:
        what = f"a checkpoint has any number of {field_to_text(field)}"
        raise InvalidFilter(what, text, place, _operators(reference))


def _operators(reference: Reference) -> list[str]:
    """What can follow the field instead."""
    kind, allowed = reference.spec.type, ["=", "!=", "in", "not in"]
    if kind not in _UNORDERED and not reference.spec.some:
        allowed += ["<", "<=", ">", ">=", "between"]
    if kind in (FieldType.TEXT, FieldType.ANY):
        allowed += ["like", "ilike"]
    if kind in (FieldType.NUMBER, FieldType.ANY):
        allowed.append("is nan")
    return [*allowed, "is null"]


def _check_value(reference: Reference, literal: syntax.Literal, text: str) -> None:
    spec, value = reference.spec, literal.value
    name = ".".join((*spec.path, *reference.names))
    if not _fits(spec.type, value):
        shown = {bool: "true or false", str: "text"}.get(type(value), "a number")
        expected = [f"'{choice}'" for choice in spec.choices] or [_literal_words(spec.type)]
        hint = ""
        if spec.type in _NUMERIC and isinstance(value, str):
            hint = "NaN is asked for with 'is nan'." if value.lower() == "nan" else "Numbers stand without quotes."
        raise InvalidFilter(f"{name} is {spec.type.value}, not {shown}", text, literal.place, expected, hint=hint)
    if isinstance(value, str):
        _check_text(reference, name, value, literal.place, text)
    elif spec.path == ("capabilities",) and not 0 <= value <= 1:
        what = f"{name} is a percentile from 0 to 1, and never {value:g}"
        hint = f"Did you mean {value / 100:g}?" if 1 < value <= 100 else ""
        raise InvalidFilter(what, text, literal.place, ["a number from 0 to 1"], hint=hint)


def _fits(kind: FieldType, value: bool | int | float | str) -> bool:
    match kind:
        case FieldType.ANY:
            return True
        case FieldType.BOOLEAN:
            return isinstance(value, bool)
        case FieldType.INTEGER | FieldType.NUMBER:
            return not isinstance(value, bool | str)
        case _:
            return isinstance(value, str)


def _literal_words(kind: FieldType) -> str:
    if kind is FieldType.TIME:
        return TIME_WORDS
    return "text in quotes" if kind in (FieldType.TEXT, FieldType.ID) else kind.value


def _check_text(reference: Reference, name: str, value: str, place: int, text: str) -> None:
    spec = reference.spec
    if spec.type is FieldType.CHOICE and value not in spec.choices:
        expected = [f"'{choice}'" for choice in spec.choices]
        hint = did_you_mean(value, spec.choices)
        raise InvalidFilter(f"{name} is never {value[:40]!r}", text, place, expected, hint=hint)
    if spec.type is FieldType.ID and ids.from_text(value) is None:
        raise InvalidFilter(f"{value[:40]!r} is no id", text, place, [f"an id of {ids.LENGTH} letters and digits"])
    if spec.type is FieldType.TIME:
        moment = read_time(value)
        if not isinstance(moment, datetime):
            raise InvalidFilter(f"{value[:40]!r} {moment}", text, place, [TIME_WORDS])


def _check_pattern(pattern: syntax.Literal, text: str) -> None:
    """PostgreSQL refuses a pattern that ends in a lone escape character; SQLite matches nothing."""
    assert isinstance(pattern.value, str)
    stripped = pattern.value.rstrip("\\")
    if (len(pattern.value) - len(stripped)) % 2:
        what = "the pattern ends in a backslash that escapes nothing"
        raise InvalidFilter(what, text, pattern.place, ["a character after the backslash", "two backslashes"])
