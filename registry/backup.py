"""Copies of the whole registry, taken while the service runs, and put back where none does.

SQLite is copied by its own online backup: one consistent state, and writers go on meanwhile. PostgreSQL's own programs
do the same for it; the password goes to them by the environment, where no list of processes shows it.
"""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from sqlalchemy import URL, Connection, NullPool, create_engine, text

from registry.errors import Conflict, Invalid, Unavailable

_LAST_LINES: Final = 5  # of what a program said
_LET_GO_SECONDS: Final = 5.0  # in which what a service held is free again after its end, also after a kill


class BadBackup(Invalid):
    code = "bad-backup"
    title = "This is no backup that can be restored"


class BackupExists(Conflict):
    code = "backup-exists"
    title = "There is a file of that name"


class CannotWrite(Invalid):
    code = "backup-cannot-be-written"
    title = "The backup cannot be written there"


class DatabaseInUse(Conflict):
    code = "database-in-use"
    title = "The database is in use"


class NotEmpty(Conflict):
    code = "database-not-empty"
    title = "There is a registry already"


class ProgramFailed(Unavailable):
    code = "backup-program-failed"
    title = "The program that copies the database failed"


@dataclass(frozen=True)
class Contents:
    """What a copy holds, counted in it."""

    revision: str
    projects: int
    runs: int
    checkpoints: int


def back_up(url: URL, target: Path) -> Contents | None:
    """Write the whole database to a new file that only its owner can read, and has its name only once it is whole.

    Gives what it holds; None where only PostgreSQL's own programs can tell.
    Raises BackupExists, CannotWrite, ProgramFailed, BadBackup.
    """
    if target.exists():
        raise BackupExists(f"{target} is there already; name another file.")
    part = target.with_name(f"{target.name}.part")
    try:
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise CannotWrite(f"{target.parent} takes no file: {error.strerror}. Name one in a folder that does.") from None
    try:
        if url.get_backend_name() == "sqlite":
            _copy_sqlite(Path(url.database or ""), part)
            contents: Contents | None = look_into(part)
        else:
            _run("pg_dump", url, ["--format=custom", "--no-owner", "--file", str(part)])
            contents = None
        _flush(part)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    _flush(target.parent)
    return contents


def restore(url: URL, source: Path, *, replace: bool, aside: Path) -> Path | None:
    """Put a copy in the place of the database; where the one before lies now, None where there was none.

    `replace`: even where that holds a registry. It is kept first: SQLite's file beside the new one, PostgreSQL's as an
    archive in the folder `aside`. Raises BadBackup, NotEmpty, DatabaseInUse, CannotWrite, ProgramFailed.
    """
    if not source.is_file():
        raise BadBackup(f"{source} is no file.")
    if url.get_backend_name() == "sqlite":
        return _restore_sqlite(Path(url.database or ""), source, replace=replace)
    return _restore_postgresql(url, source, replace=replace, aside=aside)


def look_into(file: Path) -> Contents:
    """What a copy of SQLite holds, after its pages were held against each other. Raises BadBackup."""
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as copy:
            if (verdict := copy.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise BadBackup(f"{file} is damaged: {verdict}.")
            (revision,) = copy.execute("SELECT version_num FROM alembic_version").fetchone()
            counts = copy.execute(_COUNTS).fetchone()
    except (sqlite3.DatabaseError, TypeError) as error:
        raise BadBackup(f"{file} is no registry of Cairn: {error}.") from None
    return Contents(revision, *counts)


_COUNTS: Final = "SELECT (SELECT count(*) FROM project), (SELECT count(*) FROM run), (SELECT count(*) FROM checkpoint)"


def _copy_sqlite(database: Path, target: Path) -> None:
    if not database.is_file():
        raise BadBackup(f"There is no database {database} yet.")
    with closing(sqlite3.connect(database, timeout=30)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")  # one file, without another beside it


def _restore_sqlite(database: Path, source: Path, *, replace: bool) -> Path | None:
    look_into(source)
    before = None
    if database.exists():
        _wait_for_its_end(partial(_refuse_in_use, database))
        if _holds_a_registry(database) and not replace:
            raise NotEmpty(f"{database} holds a registry. Give --replace to put it aside and take the backup instead.")
        before = database.with_name(f"{database.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    part = database.with_name(f"{database.name}.part")
    part.unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_WRONLY, 0o600))
    shutil.copyfile(source, part)
    _flush(part)
    if before is not None:
        for beside in ("", "-wal", "-shm", "-journal"):  # one that is damaged may have left these: never for the next
            if (old := database.with_name(database.name + beside)).exists():
                os.replace(old, before.with_name(before.name + beside))
    os.replace(part, database)
    _flush(database.parent)
    return before


def _wait_for_its_end(refuse_in_use: Callable[[], None]) -> None:
    """A service that has just been ended lets go of its database a moment later. Raises DatabaseInUse."""
    latest = time.monotonic() + _LET_GO_SECONDS
    while True:
        try:
            return refuse_in_use()
        except DatabaseInUse:
            if time.monotonic() > latest:
                raise
        time.sleep(0.1)


def _refuse_in_use(database: Path) -> None:
    """Raises DatabaseInUse. Everything that was written is in the one file afterwards, with nothing beside it."""
    try:
        with closing(sqlite3.connect(database, timeout=0, isolation_level=None)) as held:
            held.execute("PRAGMA locking_mode = EXCLUSIVE")
            if held.execute("PRAGMA journal_mode = DELETE").fetchone()[0] != "delete":
                raise sqlite3.OperationalError("another process has it open")
            held.execute("BEGIN EXCLUSIVE")
            held.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        raise DatabaseInUse(
            f"{database} cannot be replaced: {error}. Stop the service and its workers first."
        ) from None
    except sqlite3.DatabaseError:
        return  # damaged: there is nothing to hold


def _holds_a_registry(database: Path) -> bool:
    try:
        return look_into(database).projects > 0
    except BadBackup:
        return database.stat().st_size > 0


def _restore_postgresql(url: URL, source: Path, *, replace: bool, aside: Path) -> Path | None:
    with source.open("rb") as file:
        if file.read(5) != b"PGDMP":
            raise BadBackup(f"{source} is no archive of pg_dump, and CAIRN_DATABASE_URL names a PostgreSQL database.")
    _wait_for_its_end(partial(_refuse_others, url))
    filled = _holds_projects(url)
    if filled and not replace:
        raise NotEmpty("The database holds a registry. Give --replace to put it aside and take the backup instead.")
    before = None
    if filled:
        before = aside / f"cairn.before-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.dump"
        back_up(url, before)
    _run("pg_restore", url, ["--no-owner", "--single-transaction", "--exit-on-error", *_CLEAN, str(source)])
    return before


_CLEAN: Final = ("--clean", "--if-exists")  # the empty tables of a first start are in the way too


def _refuse_others(url: URL) -> None:
    """Raises DatabaseInUse."""
    with _connected(url) as connection:
        others = connection.execute(text(_OTHERS)).scalar_one()
    if others:
        who = f"{others} other connections" if others > 1 else "another connection"
        raise DatabaseInUse(f"The database has {who}. Stop the service and its workers first, on every host.")


def _holds_projects(url: URL) -> bool:
    with _connected(url) as connection:
        there = connection.execute(text("SELECT to_regclass('project') IS NOT NULL")).scalar_one()
        return bool(there and connection.execute(text("SELECT EXISTS (SELECT FROM project)")).scalar_one())


def _connected(url: URL) -> AbstractContextManager[Connection]:
    return create_engine(url, poolclass=NullPool, connect_args={"connect_timeout": 5}).connect()


_OTHERS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
"""


def _run(program: str, url: URL, options: Sequence[str]) -> None:
    """Raises ProgramFailed, with the last that the program said."""
    path = shutil.which(program)
    if path is None:
        raise ProgramFailed(f"{program} is not on this host. It comes with PostgreSQL's client programs.")
    plain = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    password = {} if url.password is None else {"PGPASSWORD": str(url.password)}
    environment: Mapping[str, str] = os.environ | password
    call = [path, "--dbname", plain, *options]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        said = "; ".join(done.stderr.strip().splitlines()[-_LAST_LINES:])
        raise ProgramFailed(f"{program} ended with {done.returncode}: {said or 'it said nothing'}.")


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
