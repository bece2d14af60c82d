"""Inserting what may be there already, on both databases. Natural keys make every write safe to repeat."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, tuple_
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session

from registry.db import Base

T = TypeVar("T")
CHUNK = 500  # keys a statement: SQLite takes 32,766 variables, PostgreSQL 65,535


def insert_into(session: Session, table: type[Base]) -> Any:
    """An INSERT of the session's own dialect, which knows ON CONFLICT."""
    return insert_statement(table, session.get_bind().dialect.name)


@lru_cache(maxsize=256)
def insert_statement(table: type[Base], dialect: str) -> Any:
    """An INSERT into a table, in the words of a dialect."""
    plain = Base.metadata.tables[table.__tablename__]  # without the ORM's own work for each row
    return (sqlite if dialect == "sqlite" else postgresql).insert(plain)


@lru_cache(maxsize=256)
def _insert_missing(table: type[Base], dialect: str, returning: bool) -> Any:
    statement = insert_statement(table, dialect).on_conflict_do_nothing()
    return statement.returning(Base.metadata.tables[table.__tablename__].c.id) if returning else statement


def insert_missing(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert the rows whose keys are not there yet; one that another writer inserts at this moment counts as there."""
    if rows:
        session.execute(_insert_missing(table, session.get_bind().dialect.name, False), list(rows))


def insert_new(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> set[int]:
    """Like `insert_missing`; gives the ids of the rows that were inserted."""
    if not rows:
        return set()
    return set(session.scalars(_insert_missing(table, session.get_bind().dialect.name, True), list(rows)))


def insert_all(session: Session, table: type[Base], rows: Sequence[Mapping[str, Any]]) -> None:
    """Insert rows that cannot be there yet."""
    if rows:
        session.execute(insert_statement(table, session.get_bind().dialect.name), list(rows))


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
