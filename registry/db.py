"""The database: engines, sessions, column types, and the names of constraints.

SQLite and PostgreSQL from the same code. On SQLite one connection writes (`BEGIN IMMEDIATE`, so a transaction
never fails half-way for a lock) and a pool of others reads; each commit is flushed to disk before it is acknowledged.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, ClassVar, Final

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    DateTime,
    Dialect,
    Double,
    Engine,
    ForeignKeyConstraint,
    Integer,
    LargeBinary,
    MetaData,
    String,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.types import TypeDecorator, TypeEngine

from registry import known_ids
from registry.sqlite_file import OpenFile
from registry.types import NON_FINITE

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

# INTEGER on SQLite makes a single-column primary key the row's own address; PostgreSQL needs all 64 bits.
Int64: Final = BigInteger().with_variant(Integer(), "sqlite")
# Text compares by code point on both databases.
Words: Final = String().with_variant(String(collation="C"), "postgresql")

IN_BINARY: Final = "in_binary"  # an option of statements whose rows are numbers only; SQLite knows no other way

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)


def to_micros(moment: datetime) -> int:
    """Whole microseconds since 1970, exactly."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(micros: int) -> datetime:
    return EPOCH + timedelta(microseconds=micros)


def now() -> datetime:
    return datetime.now(UTC)


class UtcTime(TypeDecorator[datetime]):
    """An aware UTC time: timestamptz on PostgreSQL, integer microseconds on SQLite, which has no type for it."""

    impl = DateTime
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "sqlite":
            return dialect.type_descriptor(BigInteger())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return to_micros(value) if dialect.name == "sqlite" else value

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return from_micros(value) if dialect.name == "sqlite" else value.astimezone(UTC)


class Base(DeclarativeBase):
    metadata = MetaData(naming_convention=NAMES)
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        int: Int64,
        str: Words,
        float: Double(),
        bytes: LargeBinary(),
        datetime: UtcTime(),
    }


def one_of(column: str, values: Any) -> CheckConstraint:
    """A check constraint that a text column holds one of an enum's values."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def number_or_special(value: str = "value", special: str = "special") -> tuple[CheckConstraint, ...]:
    """The constraints of a number that may be non-finite: a value, or a marker, or neither for 'missing'."""
    listed = ", ".join(f"'{name}'" for name in NON_FINITE)
    return (
        CheckConstraint(f"{value} IS NULL OR {special} IS NULL", name=f"{value}_or_{special}"),
        CheckConstraint(f"{special} IN ({listed})", name=special),
    )


def within_project(column: str, table: str, **options: Any) -> ForeignKeyConstraint:
    """A foreign key that carries the project along, so that rows of two projects can never be tied together."""
    return ForeignKeyConstraint(["project_id", column], [f"{table}.project_id", f"{table}.id"], **options)


def split_number(number: float | None) -> tuple[float | None, str | None]:
    """A number as its two columns: (value, marker)."""
    if number is None or math.isfinite(number):
        return number, None
    if math.isnan(number):
        return None, "NaN"
    return None, "Infinity" if number > 0 else "-Infinity"


def join_number(value: float | None, special: str | None) -> float | None:
    """The number that two columns hold; None where it is missing."""
    return float(special) if special is not None else value


class Database:
    """One database, and the two ways into it: `read()` and `write()`. The edge that opens a session commits it."""

    def __init__(self, url: str, *, readers: int = 8) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self._file = OpenFile(self.url.database or "")
            self.writer = _sqlite_engine(url, self._file, size=1, begin="BEGIN IMMEDIATE")
            self.reader = _sqlite_engine(url, self._file, size=readers, begin="BEGIN")
        else:
            self.writer = _postgresql_engine(url, size=readers)
            # READ COMMITTED gives each statement its own snapshot in any case: reads need no BEGIN and no ROLLBACK.
            self.reader = self.writer.execution_options(isolation_level="AUTOCOMMIT")
        self.kept: dict[str, Any] = {}  # what rooms keep between reads, each under its own name; `close()` ends it
        self._write = sessionmaker(self.writer, expire_on_commit=False, autoflush=False)
        known_ids.remember_for(self._write, self.writer)
        self._read = sessionmaker(self.reader, expire_on_commit=False, autoflush=False, info={"database": self})

    def open_read(self) -> Session:
        """A session that reads; no connection is taken before its first statement."""
        return self._read()

    def open_write(self) -> Session:
        """A session that writes; whoever opens it commits and closes it."""
        return self._write()

    @contextmanager
    def read(self) -> Iterator[Session]:
        with self.open_read() as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session that commits when the block ends well, and takes everything back otherwise."""
        with self.open_write() as session, session.begin():
            yield session

    def dispose(self) -> None:
        for each in self.kept.values():
            each.close()
        self.writer.dispose()
        self.reader.dispose()
        if self.is_sqlite:
            self._file.forget()


def _sqlite_engine(url: str, file: OpenFile, *, size: int, begin: str) -> Engine:
    engine = create_engine(
        url,
        pool_size=size,
        max_overflow=0,
        pool_timeout=30,
        connect_args={"timeout": 30, "check_same_thread": False},
    )

    @event.listens_for(engine, "do_connect")
    def look(_dialect: object, _record: object, _given: object, _named: object) -> None:
        file.check()  # a connection would make an empty file in its place

    @event.listens_for(engine, "connect")
    def prepare(connection: DBAPIConnection, _record: object) -> None:
        connection.isolation_level = None  # transactions are begun below, not guessed by the driver
        cursor = connection.cursor()
        for pragma in (
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "busy_timeout = 30000",
            "case_sensitive_like = ON",
            "cache_size = -8000",
            "mmap_size = 0",  # a mapped file counts as memory of the process
            "temp_store = MEMORY",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()
        file.note()

    @event.listens_for(engine, "begin")
    def start(connection: Any) -> None:
        file.check()
        connection.exec_driver_sql(begin)

    return engine


def _postgresql_engine(url: str, *, size: int) -> Engine:
    """Connections are not tried before each use: after a restart of the server one request answers 503, and with it
    every connection of before is dropped."""
    engine = create_engine(
        url,
        pool_size=size,
        max_overflow=8,
        pool_timeout=10,
        connect_args={"connect_timeout": 5, "options": "-c timezone=UTC"},
    )

    @event.listens_for(engine, "before_cursor_execute")
    def prepare(_connection: Any, cursor: Any, _statement: str, _given: Any, context: Any, _many: bool) -> None:
        if context is not None and context.execution_options.get(IN_BINARY):
            cursor.format = 1  # numbers as they are, not as text: a million rows take half the time

    return engine
