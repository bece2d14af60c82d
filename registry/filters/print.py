"""Syntax tree -> canonical text: one spelling for each tree, which the parser reads back to an equal one."""

import re
from collections.abc import Sequence

from registry.filters import syntax

_WORD = re.compile(r"[\w-]+")
_RESERVED = frozenset({"and", "or", "not", "in", "is", "between", "like", "ilike", "null", "nan", "true", "false"})


def to_text(node: syntax.Node) -> str:
    match node:
        case syntax.Or(terms):
            return " or ".join(to_text(term) for term in terms)
        case syntax.And(terms):
            return " and ".join(_inside(term, syntax.Or) for term in terms)
        case syntax.Not(term):
            return f"not {_inside(term, syntax.Or, syntax.And)}"
        case _:
            return _term(node)


def order_to_text(keys: Sequence[syntax.OrderKey]) -> str:
    return ", ".join(field_to_text(key.field) + (" desc" if key.descending else "") for key in keys)


def field_to_text(field: syntax.Field) -> str:
    first, *others = field.segments
    reserved = first.lower() in _RESERVED
    return ".".join([_quoted_name(first) if reserved else _name(first), *map(_name, others)])


def _inside(node: syntax.Node, *weaker: type[syntax.Node]) -> str:
    return f"({to_text(node)})" if isinstance(node, weaker) else to_text(node)


def _term(term: syntax.Term) -> str:
    name = field_to_text(term.field)
    negation = " not" if getattr(term, "negated", False) else ""
    match term:
        case syntax.Flag():
            return name
        case syntax.Comparison(operator=operator, value=value):
            return f"{name} {operator} {_literal(value)}"
        case syntax.Membership(values=values):
            return f"{name}{negation} in ({', '.join(map(_literal, values))})"
        case syntax.Between(low=low, high=high):
            return f"{name}{negation} between {_literal(low)} and {_literal(high)}"
        case syntax.Like(pattern=pattern, any_case=any_case):
            return f"{name}{negation} {'ilike' if any_case else 'like'} {_literal(pattern)}"
        case syntax.IsNull():
            return f"{name} is{negation} null"
        case syntax.IsNan():
            return f"{name} is{negation} nan"


def _literal(literal: syntax.Literal) -> str:
    match literal.value:
        case bool(value):
            return "true" if value else "false"
        case str(value):
            return "'" + value.replace("'", "''") + "'"
        case value:
            return repr(value)


def _name(name: str) -> str:
    return name if _WORD.fullmatch(name) else _quoted_name(name)


def _quoted_name(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
