"""Inserting what may be there already, on both databases. Natural keys make every write safe to repeat."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Dialect, String, Table, TextClause, bindparam, cast, column, func, select, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.orm import InstrumentedAttribute, Session

from registry.array_literals import array_literal
from registry.db import Base

T = TypeVar("T")
MANY = 4  # rows from which one statement for all of them is worth its preparation
GROUP = 100  # rows of one statement on SQLite
CHUNK = 500  # keys a statement: SQLite takes 32,766 variables, PostgreSQL 65,535
_SQLITE: Final = sqlite.dialect()
_POSTGRESQL: Final[Dialect] = psycopg.dialect()  # type: ignore[no-untyped-call]
_TOGETHER: Final = "together"  # in a session's info: what waits for the end of a block

_Waiting = tuple[str, Mapping[str, Any]]  # the text of a statement, and its parameters


def insert_into(session: Session, table: type[Base]) -> Any:
    """An INSERT of the session's own dialect, which knows ON CONFLICT."""
    return insert_statement(table, session.get_bind().dialect.name)


def insert_statement(table: type[Base], dialect: str) -> Any:
    """An INSERT into a table, in the words of a dialect; without the ORM's own work for each row."""
    return (sqlite if dialect == "sqlite" else postgresql).insert(_table(table))


def insert_missing(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are not there yet; one that another writer inserts at this moment counts as there."""
    if rows:
        send_rows(session, table, rows, _or_nothing)


def insert_new(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> set[int]:
    """Like `insert_missing`; gives the ids of the rows that were inserted."""
    return set(send_rows(session, table, rows, _or_nothing_giving_ids)) if rows else set()


def insert_all(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that cannot be there yet."""
    together = session.info.get(_TOGETHER)
    if rows and together is not None:
        columns = tuple(rows[0])
        together.append((_text_from_arrays(table, columns), _arrays(columns, rows)))
    elif rows:
        send_rows(session, table, rows, _plain)


@contextmanager
def together(session: Session) -> Iterator[None]:
    """What `insert_all` and `execute_together` are given in this block is sent when it ends, as one statement.

    Half of what a single registration costs is the way to PostgreSQL and back. Nothing in the block may read what it
    writes. On SQLite, which has no such statement and no such way, everything is sent at once.
    """
    if session.get_bind().dialect.name == "sqlite":
        yield
        return
    waiting: list[_Waiting] = []
    session.info[_TOGETHER] = waiting
    try:
        yield
    finally:
        del session.info[_TOGETHER]
    if waiting:
        texts, values = zip(*waiting, strict=True)
        given = {f"{at}_{name}": value for at, each in enumerate(values) for name, value in each.items()}
        session.connection().exec_driver_sql(_joined(texts), given)


def execute_together(session: Session, statement: TextClause, given: Mapping[str, Any]) -> None:
    """Execute a statement that writes; within `together`, with the others."""
    waiting = session.info.get(_TOGETHER)
    if waiting is None:
        session.execute(statement, given)
    else:
        waiting.append((_compiled(statement), given))


def send_rows(
    session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]], finish: Callable[[Any], Any]
) -> list[Any]:
    """Execute an INSERT of rows that all have the same columns; `finish` adds ON CONFLICT or RETURNING one column.

    Gives what is returned. Many rows go as one statement, not as one each: PostgreSQL gets an array per column, a
    sixth of the time; SQLite gets groups of rows, half of it.
    """
    dialect = session.get_bind().dialect.name
    columns = tuple(rows[0])
    if len(rows) < MANY:
        return _returned(session.execute(_of_rows(table, dialect, finish), list(rows)))
    if dialect == "postgresql":
        return _returned(session.execute(_from_arrays(table, columns, finish), _arrays(columns, rows)))
    insert, connection, returned = _grouped(table, columns, finish), session.connection(), list[Any]()
    for group in chunks(rows, GROUP):
        values = [row[name] if write is None else write(row[name]) for row in group for name, write in insert.columns]
        returned += _returned(connection.exec_driver_sql(insert.of(len(group)), tuple(values)))
    return returned


def _returned(result: Any) -> list[Any]:
    return list(result.scalars()) if result.returns_rows else []


@lru_cache(maxsize=256)
def _of_rows(table: type[Base], dialect: str, finish: Callable[[Any], Any]) -> Any:
    return finish(insert_statement(table, dialect))


class _Grouped(NamedTuple):
    """An INSERT for SQLite around its rows; `columns` in its order, each with what writes its values."""

    before: str
    after: str
    columns: tuple[tuple[str, Callable[[Any], Any] | None], ...]

    def of(self, count: int) -> str:
        row = f"({', '.join('?' * len(self.columns))})"
        return f"{self.before}{', '.join([row] * count)}{self.after}"


@lru_cache(maxsize=256)
def _grouped(table: type[Base], columns: tuple[str, ...], finish: Callable[[Any], Any]) -> _Grouped:
    ordered = [each for each in _table(table).c if each.name in columns]
    one = finish(insert_statement(table, "sqlite").values({each.name: bindparam(each.name) for each in ordered}))
    before, _, after = str(one.compile(dialect=_SQLITE)).partition(f"({', '.join('?' * len(ordered))})")
    writers = [each.type.dialect_impl(_SQLITE).bind_processor(_SQLITE) for each in ordered]
    return _Grouped(before, after, tuple(zip([each.name for each in ordered], writers, strict=True)))


@lru_cache(maxsize=256)
def _from_arrays(table: type[Base], columns: tuple[str, ...], finish: Callable[[Any], Any]) -> Any:
    target = _table(table)
    arrays = [cast(bindparam(name, type_=String()), postgresql.ARRAY(target.c[name].type)) for name in columns]
    unnested = (
        func.unnest(*arrays).table_valued(*(column(name, target.c[name].type) for name in columns)).render_derived()
    )
    rows = select(*(unnested.c[name] for name in columns))
    return finish(postgresql.insert(target).from_select(list(columns), rows, include_defaults=False))


def _arrays(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {name: array_literal([row[name] for row in rows]) for name in columns}


@lru_cache(maxsize=256)
def _text_from_arrays(table: type[Base], columns: tuple[str, ...]) -> str:
    return _compiled(_from_arrays(table, columns, _plain))


@lru_cache(maxsize=16)
def _compiled(statement: Any) -> str:
    return str(statement.compile(dialect=_POSTGRESQL))


@lru_cache(maxsize=256)
def _joined(texts: tuple[str, ...]) -> str:
    """One statement of several; each has its parameters under names of its own."""
    *first, last = (text.replace("%(", f"%({at}_") for at, text in enumerate(texts))
    before = ", ".join(f"part_{at} AS ({text})" for at, text in enumerate(first))
    return f"WITH {before} {last}" if before else last


def _table(table: type[Base]) -> Table:
    return Base.metadata.tables[table.__tablename__]


def _plain(statement: Any) -> Any:
    return statement


def _or_nothing(statement: Any) -> Any:
    return statement.on_conflict_do_nothing()


def _or_nothing_giving_ids(statement: Any) -> Any:
    return statement.on_conflict_do_nothing().returning(statement.table.c.id)


def chunks(items: Iterable[T], size: int = CHUNK) -> Iterable[list[T]]:
    """Lists of at most `size` items, in order."""
    chunk: list[T] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def any_of(columns: Sequence[InstrumentedAttribute[Any]], keys: Sequence[tuple[Any, ...]]) -> ColumnElement[bool]:
    """The rows whose columns equal one of the keys."""
    return tuple_(*columns).in_(keys)
