"""Percentiles of capabilities, cut down to what a statement can need before the database is sent them.

Of a million checkpoints they are a parameter of 40 MB, which takes seconds to write and to read.
"""

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from registry.filters import syntax
from registry.filters.syntax import Operator

Percentiles = Mapping[int, float]  # by checkpoint id

_COMPARE: Final[Mapping[Operator, Callable[[Any, Any], bool]]] = {
    Operator.EQUAL: operator.eq,
    Operator.NOT_EQUAL: operator.ne,
    Operator.LESS: operator.lt,
    Operator.AT_MOST: operator.le,
    Operator.GREATER: operator.gt,
    Operator.AT_LEAST: operator.ge,
}


def that_can_be_found(node: syntax.Node | None, percentiles: Mapping[str, Percentiles]) -> dict[str, Percentiles]:
    """By capability, those that meet what the filter asks of it at its top level: no other checkpoint is found."""
    found = dict(percentiles)
    for term in syntax.conjuncts(node):
        match term:
            case syntax.Comparison(field, relation, bound) if field.segments[0] == "capabilities":
                wanted = True
            case syntax.Not(syntax.Comparison(field, relation, bound)) if field.segments[0] == "capabilities":
                wanted = False  # whoever has no percentile meets neither
            case _:
                continue
        name, compare = field.segments[1], _COMPARE[relation]
        found[name] = {number: each for number, each in found[name].items() if compare(each, bound.value) == wanted}
    return found


def of_checkpoints(ids: Collection[int], percentiles: Mapping[str, Percentiles]) -> dict[str, Percentiles]:
    """By capability, those of these checkpoints."""
    return {name: {number: every[number] for number in ids if number in every} for name, every in percentiles.items()}
