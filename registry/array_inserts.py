"""Many rows in one statement of PostgreSQL: an array for each column that differs, one value for each that does not.

A sixth of the time that a statement for each row takes. Most columns of a batch are the same in every row (the project,
what nobody said), and one value is neither written nor read ten thousand times.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Dialect, String, bindparam, cast, column, func, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import psycopg

from registry.array_literals import array_literal
from registry.db import Base

Finish = Callable[[Any], Any]  # adds ON CONFLICT or RETURNING to an INSERT
DIALECT: Final[Dialect] = psycopg.dialect()  # type: ignore[no-untyped-call]


def insert_of(table: type[Base], rows: Sequence[Mapping[str, Any]], finish: Finish) -> tuple[Any, dict[str, Any]]:
    """The INSERT of rows that all have the same columns, and its parameters."""
    columns = tuple(rows[0])
    given: dict[str, Any] = {}
    same: list[str] = []
    for name in columns:
        values = [row[name] for row in rows]
        # Of numbers with a sign of their own zero and minus zero are equal, and not the same.
        if len(values) == 1 or (not isinstance(values[0], float) and values.count(values[0]) == len(values)):
            same.append(name)
            given[name] = values[0]
        else:
            given[name] = array_literal(values)
    if len(same) == len(columns) and len(rows) > 1:  # something must say how many rows there are
        given[same[0]] = array_literal([row[same.pop(0)] for row in rows])
    return _statement(table, columns, frozenset(same), finish), given


def text_of(table: type[Base], rows: Sequence[Mapping[str, Any]], finish: Finish) -> tuple[str, dict[str, Any]]:
    """The same as plain text, for the driver."""
    statement, given = insert_of(table, rows, finish)
    return compiled(statement), given


@lru_cache(maxsize=512)
def compiled(statement: Any) -> str:
    return str(statement.compile(dialect=DIALECT))


@lru_cache(maxsize=512)
def _statement(table: type[Base], columns: tuple[str, ...], same: frozenset[str], finish: Finish) -> Any:
    target = Base.metadata.tables[table.__tablename__]
    differing = [name for name in columns if name not in same]
    values: dict[str, Any] = {
        name: cast(bindparam(name, type_=target.c[name].type), target.c[name].type) for name in same
    }
    if differing:
        arrays = [cast(bindparam(name, type_=String()), postgresql.ARRAY(target.c[name].type)) for name in differing]
        names = [column(name, target.c[name].type) for name in differing]
        unnested = func.unnest(*arrays).table_valued(*names).render_derived()
        values |= {name: unnested.c[name] for name in differing}
    rows = select(*(values[name] for name in columns))
    return finish(postgresql.insert(target).from_select(list(columns), rows, include_defaults=False))
