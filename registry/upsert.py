"""Inserting what may be there already, on both databases. Natural keys make every write safe to repeat."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from registry.array_inserts import insert_of, text_of
from registry.db import Base
from registry.grouped_inserts import GROUP, grouped
from registry.together import waiting_of

T = TypeVar("T")
MANY = 4  # rows from which one statement for all of them is worth its preparation
CHUNK = 500  # keys a statement: SQLite takes 32,766 variables, PostgreSQL 65,535


def insert_into(session: Session, table: type[Base]) -> Any:
    """An INSERT of the session's own dialect, which knows ON CONFLICT."""
    return insert_statement(table, session.get_bind().dialect.name)


def insert_statement(table: type[Base], dialect: str) -> Any:
    """An INSERT into a table, in the words of a dialect; without the ORM's own work for each row."""
    target = Base.metadata.tables[table.__tablename__]
    return (sqlite if dialect == "sqlite" else postgresql).insert(target)


def insert_missing(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are not there yet; one that another writer inserts at this moment counts as there."""
    if rows:
        send_rows(session, table, rows, _or_nothing)


def insert_new(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> set[int]:
    """Like `insert_missing`; gives the ids of the rows that were inserted."""
    return set(send_rows(session, table, rows, _or_nothing_giving_ids)) if rows else set()


def insert_all(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that cannot be there yet."""
    waiting = waiting_of(session)
    if rows and waiting is not None:
        waiting.append(text_of(table, rows, _plain))
    elif rows:
        send_rows(session, table, rows, _plain)


def send_rows(
    session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]], finish: Callable[[Any], Any]
) -> list[Any]:
    """Execute an INSERT of rows that all have the same columns; `finish` adds ON CONFLICT or RETURNING one column.

    Gives what is returned. Many rows go as one statement, not as one each: PostgreSQL gets an array per column, a
    sixth of the time; SQLite gets groups of rows, half of it.
    """
    dialect = session.get_bind().dialect.name
    if len(rows) < MANY:
        return _returned(session.connection().execute(_of_rows(table, dialect, finish), list(rows)))
    if dialect == "postgresql":
        return _returned(session.connection().execute(*insert_of(table, rows, finish)))
    insert, connection, returned = grouped(table, tuple(rows[0]), finish), session.connection(), list[Any]()
    for group in chunks(rows, GROUP):
        values = [row[name] if write is None else write(row[name]) for row in group for name, write in insert.columns]
        returned += _returned(connection.exec_driver_sql(insert.of(len(group)), tuple(values)))
    return returned


def _returned(result: Any) -> list[Any]:
    return list(result.scalars()) if result.returns_rows else []


@lru_cache(maxsize=256)
def _of_rows(table: type[Base], dialect: str, finish: Callable[[Any], Any]) -> Any:
    return finish(insert_statement(table, dialect))


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
