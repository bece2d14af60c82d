"""Syntax tree -> a condition in SQL with bound parameters, the same in meaning on SQLite and PostgreSQL.

A comparison with a missing value or NaN is NULL, which `not` keeps NULL: neither true nor false. An infinity is above
or below every number. The `is` tests ask about the value itself and are always true or false: `is null` is true of a
missing value only, `is nan` of NaN only.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy import BigInteger, Double, String, and_, bindparam, false, func, literal, not_, or_

from registry import ids
from registry.db import UtcTime
from registry.filters import syntax, tables
from registry.filters.columns import Columns, Expression, Value, some_replica
from registry.filters.fields import FieldType, find_field
from registry.filters.fields import Reference as Ref
from registry.filters.times import read_time
from registry.names import composed, run_name

ESCAPE = "\\"
_COMPARE: dict[syntax.Operator, Any] = {
    syntax.Operator.EQUAL: lambda left, right: left == right,
    syntax.Operator.NOT_EQUAL: lambda left, right: left != right,
    syntax.Operator.LESS: lambda left, right: left < right,
    syntax.Operator.AT_MOST: lambda left, right: left <= right,
    syntax.Operator.GREATER: lambda left, right: left > right,
    syntax.Operator.AT_LEAST: lambda left, right: left >= right,
}


def compile_filter(node: syntax.Node, columns: Columns) -> Expression:
    """The condition of a checked tree. `columns` then knows which tables the statement must join."""
    match node:
        case syntax.And(terms):
            return and_(*(compile_filter(term, columns) for term in terms))
        case syntax.Or(terms):
            return or_(*(compile_filter(term, columns) for term in terms))
        case syntax.Not(term):
            return not_(compile_filter(term, columns))
        case term:
            reference = find_field(term.field, "")
            return _some(term, reference) if reference.spec.some else _compile_term(term, reference, columns)


def _compile_term(term: syntax.Term, ref: Ref, columns: Columns) -> Expression:
    value = columns.value(ref)
    match term:
        case syntax.Flag():
            return value.plain
        case syntax.Comparison(operator=operator, value=given):
            return _compare(operator, ref, value, given)
        case syntax.Membership(values=values, negated=negated):
            return _negated(_member(ref, value, values), negated)
        case syntax.Between(low=low, high=high, negated=negated):
            at_least = _compare(syntax.Operator.AT_LEAST, ref, value, low)
            at_most = _compare(syntax.Operator.AT_MOST, ref, value, high)
            return _negated(and_(at_least, at_most), negated)
        case syntax.Like(pattern=pattern, any_case=any_case, negated=negated):
            return _negated(_like(_side(value, pattern), _text(ref, str(pattern.value), composed), any_case), negated)
        case syntax.IsNull(negated=negated):
            return _negated(_missing(value), negated)
        case syntax.IsNan(negated=negated):
            return _negated(_nan(value), negated)


def _negated(condition: Expression, negated: bool) -> Expression:
    return not_(condition) if negated else condition


def _side(value: Value, given: syntax.Literal) -> Expression:
    """A config value is compared as text with text, true and false, and as a number with a number."""
    if value.text is not None and isinstance(given.value, str | bool):
        return value.text
    return value.plain if value.number is None else value.number()


def _compare(operator: syntax.Operator, ref: Ref, value: Value, given: syntax.Literal) -> Expression:
    side = _side(value, given)
    if ref.spec.type is FieldType.BOOLEAN:
        wanted = bool(given.value) is (operator is syntax.Operator.EQUAL)
        return side if wanted else not_(side)
    result: Expression = _COMPARE[operator](side, _bound(ref, given))
    return result


def _member(ref: Ref, value: Value, values: tuple[syntax.Literal, ...]) -> Expression:
    """`in`, one list per SQL type: a whole number and a fraction are bound differently."""
    if ref.spec.type is FieldType.BOOLEAN:
        return or_(*(_compare(syntax.Operator.EQUAL, ref, value, given) for given in values))
    lists: dict[Any, tuple[Expression, list[Any]]] = {}
    for given in values:
        bound = _bound(ref, given)
        side = _side(value, given)
        lists.setdefault((side is value.text, type(bound.type)), (side, []))[1].append(bound)
    parts = [
        side.in_(bindparam(None, [bound.value for bound in bounds], expanding=True, type_=bounds[0].type))
        for side, bounds in lists.values()
    ]
    return or_(*parts)


def _bound(ref: Ref, given: syntax.Literal) -> Any:
    """The literal as a parameter of the SQL type that it has, not of the column's: 1000.5 is no BIGINT."""
    value = given.value
    match ref.spec.type:
        case FieldType.ID:
            return literal(ids.from_text(str(value)))
        case FieldType.TIME:
            return literal(read_time(str(value)), UtcTime())
        case FieldType.ANY if isinstance(value, bool):
            return literal("true" if value else "false")
        case FieldType.INTEGER if isinstance(value, int):
            return literal(value, BigInteger())
        case FieldType.INTEGER | FieldType.NUMBER | FieldType.ANY if not isinstance(value, str):
            return literal(float(value), Double())
        case _:
            return literal(_text(ref, str(value), run_name), String())


def _text(ref: Ref, text: str, as_kept: Callable[[str], str]) -> str:
    """Names of runs are kept in one form, however they were typed."""
    return as_kept(text) if ref.spec.path == ("run", "name") else text


def _like(side: Expression, pattern: str, any_case: bool) -> Expression:
    """`ilike` folds ASCII letters only, as either database does where text has code point order."""
    if any_case:
        return side.ilike(pattern, escape=ESCAPE)
    return side.like(pattern, escape=ESCAPE)


def _missing(value: Value) -> Expression:
    if value.text is not None:
        return value.text.is_(None)
    if value.special is not None:
        return and_(value.plain.is_(None), value.special().is_(None))
    return value.plain.is_(None)


def _nan(value: Value) -> Expression:
    """Two-valued: a missing value is not NaN."""
    if value.special is None and value.text is None:
        return false()
    marker = value.text if value.special is None else value.special()
    return func.coalesce(marker, literal("")) == literal("NaN")


def _some(term: syntax.Term, ref: Ref) -> Expression:
    """A field of which a checkpoint has many: `=` asks for some, `!=` and every `not` for none."""
    column = tables.replica.c[ref.spec.path[1]]
    removed_too = ref.spec.path[1] == "state"
    match term:
        case syntax.Comparison(operator=operator, value=given):
            condition, negated = column == _bound(ref, given), operator is syntax.Operator.NOT_EQUAL
        case syntax.Membership(values=values, negated=negated):
            condition = _member(ref, Value(column), values)
        case syntax.Like(pattern=pattern, any_case=any_case, negated=negated):
            condition = _like(column, str(pattern.value), any_case)
        case _:
            condition, negated = column.is_not(None), not getattr(term, "negated", False)
    return _negated(some_replica(condition, removed_too=removed_too), negated)
