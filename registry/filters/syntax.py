"""The syntax tree of a filter: frozen values, compared without their places in the text.

`conjunction` and `disjunction` are the only makers of And and Or: neither ever holds its own kind, or fewer
than two terms, so a tree has one canonical text.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Operator(StrEnum):
    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    AT_MOST = "<="
    GREATER = ">"
    AT_LEAST = ">="


@dataclass(frozen=True, slots=True)
class Field:
    """A name as written: `scores.gsm8k` is ("scores", "gsm8k"). Places are 0-based character offsets."""

    segments: tuple[str, ...]
    places: tuple[int, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def place(self, segment: int = 0) -> int:
        return self.places[segment] if segment < len(self.places) else 0


@dataclass(frozen=True, slots=True)
class Literal:
    value: bool | int | float | str
    place: int = dataclasses.field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Flag:
    """A boolean field alone, as in `not superseded`."""

    field: Field


@dataclass(frozen=True, slots=True)
class Comparison:
    field: Field
    operator: Operator
    value: Literal
    place: int = dataclasses.field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Membership:
    field: Field
    values: tuple[Literal, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between:
    field: Field
    low: Literal
    high: Literal
    negated: bool = False
    place: int = dataclasses.field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    field: Field
    pattern: Literal
    any_case: bool = False
    negated: bool = False
    place: int = dataclasses.field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class IsNull:
    field: Field
    negated: bool = False


@dataclass(frozen=True, slots=True)
class IsNan:
    field: Field
    negated: bool = False
    place: int = dataclasses.field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Not:
    term: "Node"


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple["Node", ...]


Term = Flag | Comparison | Membership | Between | Like | IsNull | IsNan
Node = Term | Not | And | Or


@dataclass(frozen=True, slots=True)
class OrderKey:
    field: Field
    descending: bool = False


def conjunction(terms: Iterable[Node]) -> Node:
    """All of the terms (at least one), with an And inside an And opened up."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, And) else (term,)))
    return flat[0] if len(flat) == 1 else And(flat)


def disjunction(terms: Iterable[Node]) -> Node:
    """Any of the terms (at least one), with an Or inside an Or opened up."""
    flat = tuple(inner for term in terms for inner in (term.terms if isinstance(term, Or) else (term,)))
    return flat[0] if len(flat) == 1 else Or(flat)


def conjuncts(node: Node | None) -> tuple[Node, ...]:
    """What must all hold: the terms of an And, or the node alone; nothing for no filter."""
    if node is None:
        return ()
    return node.terms if isinstance(node, And) else (node,)


def terms_of(node: Node) -> list[Term]:
    """Every term of the tree, from left to right."""
    found: list[Term] = []
    todo = [node]
    while todo:
        match todo.pop():
            case And(terms) | Or(terms):
                todo.extend(reversed(terms))
            case Not(term):
                todo.append(term)
            case term:
                found.append(term)
    return found
