"""Conditions that no checkpoint can meet together: two sizes, strong and weak at one thing, above 60% and below 50%."""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from registry.search.conditions import (
    STRONG,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
)
from registry.search.draft import UnreadableQuery

_MANY: Final = ("replicas.", "tags.")  # of these a checkpoint has several
_LOWER, _UPPER = (">", ">=", "="), ("<", "<=", "=")


def refuse_contradictions(conditions: Iterable[Condition]) -> None:
    """Raises UnreadableQuery: nothing would be found, ever, so the question was meant otherwise."""
    terms = sorted((term for each in conditions for term in _terms(each)), key=lambda term: term[0])
    for (name, _), group in groupby(terms, key=lambda term: term[0]):
        if _is_empty([(relation, value) for _, relation, value in group]):
            what = f"No checkpoint can meet everything that is said of {name}"
            raise UnreadableQuery(f"{what}: ask in queries of their own, or say which one is meant.")


def _terms(condition: Condition) -> list[tuple[tuple[str, str], str, Any]]:
    """What is compared, of which kind its values are, and the comparison."""
    match condition:
        case FieldCondition(name, relation, value) if not name.startswith(_MANY):
            kind = "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__
            return [((name, kind), relation, value)]
        case BenchmarkCondition(name, relation, value, metric, filter):
            return [((name, f"{metric} {filter}"), relation, value)]
        case CapabilityCondition(name, relation, value):
            return [((name, "percentile"), ">=" if relation == STRONG else "<=", value)]
        case StandingCondition(name, relation, value, metric, by_value):
            return [((name, f"percentile {metric} {by_value}"), ">=" if relation == STRONG else "<=", value)]
    return []


def _is_empty(terms: Sequence[tuple[str, Any]]) -> bool:
    equal = {value for relation, value in terms if relation == "="}
    if len(equal) > 1 or any(relation == "!=" and value in equal for relation, value in terms):
        return True
    if not all(isinstance(value, int | float) for _, value in terms):
        texts = [value for _, value in terms]
        ordered = {value: place for place, value in enumerate(sorted(set(texts)))}
        terms = [(relation, ordered[value]) for relation, value in terms]
    low = max(((value, relation == ">") for relation, value in terms if relation in _LOWER), default=(-math.inf, False))
    high = min(((value, relation != "<") for relation, value in terms if relation in _UPPER), default=(math.inf, True))
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or not high[1]))
