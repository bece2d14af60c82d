"""The database: whether it answers, how it is kept, and whether its clock is ours."""

import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from sqlalchemy import func, select, text
from sqlalchemy.exc import DatabaseError, OperationalError
from sqlalchemy.orm import Session

from registry.db import Database, now
from registry.health.shapes import Found, fault, ok, warning

SLOW_SECONDS: Final = 0.5  # for the simplest question there is
LONG_LOG_BYTES: Final = 1024**3  # of SQLite's log: a reader that never ends keeps it from being folded in
CLOCK_SKEW: Final = timedelta(seconds=5)
RESTORE: Final = "`cairn-server restore FILE --replace` puts a backup in its place."


def look_at_database(database: Database, *, whole: bool) -> Iterator[Found]:
    """`whole`: every page of SQLite's file is read too, which takes about a second for each 500 MB."""
    file = Path(database.url.database or "")
    if database.is_sqlite and not file.is_file():
        yield fault("database", f"{file} is not there.", f"`cairn-server serve` makes an empty one; {RESTORE}")
        return
    try:
        with database.read() as session:
            yield _answer(session, database)
            yield from _sqlite(session, file, whole) if database.is_sqlite else _postgresql(session)
    except OperationalError as error:
        reason = (str(error.orig).strip().splitlines() or ["no reason given"])[0]
        yield fault("database", f"It does not answer: {reason}", "CAIRN_DATABASE_URL says where it is.")
    except DatabaseError as error:
        yield fault("database", f"It cannot be read: {error.orig}", RESTORE)


def _answer(session: Session, database: Database) -> Found:
    began = time.monotonic()
    session.execute(select(1))
    took = time.monotonic() - began
    said = f"{database.url.render_as_string(hide_password=True)} answers in {took * 1000:.0f} ms."
    if took > SLOW_SECONDS:
        return warning("database", said, "Is it far away, or busy with something else?")
    return ok("database", said)


def _sqlite(session: Session, file: Path, whole: bool) -> Iterator[Found]:
    mode = session.execute(text("PRAGMA journal_mode")).scalar_one()
    if mode != "wal":
        advice = "Writing then stops all reading; WAL needs a local disk, not a network share."
        yield warning("log", f"SQLite keeps its log in mode {mode}.", advice)
    log = file.with_name(f"{file.name}-wal")
    size = log.stat().st_size if log.exists() else 0
    if size > LONG_LOG_BYTES:
        yield warning("log", f"{log} has {size / 1024**3:,.1f} GiB.", "Stop what has read for hours, or the service.")
    if whole:
        yield _contents(session)


def _contents(session: Session) -> Found:
    faults = list(session.execute(text("PRAGMA integrity_check(5)")).scalars())
    if faults != ["ok"]:
        return fault("contents", f"The file is damaged: {'; '.join(faults)}", RESTORE)
    strays = session.execute(text("PRAGMA foreign_key_check")).fetchmany(5)
    if strays:
        tables = ", ".join(sorted({row[0] for row in strays}))
        return fault("contents", f"Rows of {tables} belong to rows that are not there.", RESTORE)
    return ok("contents", "Every page, key and reference is whole.")


def _postgresql(session: Session) -> Iterator[Found]:
    skew = abs(session.execute(select(func.clock_timestamp())).scalar_one() - now())
    if skew > CLOCK_SKEW:
        said = f"This host's clock and the database's differ by {skew.total_seconds():,.0f} s."
        yield warning("clock", said, "Keep both by NTP: leases and heartbeats are compared with them.")
    else:
        yield ok("clock", f"This host's clock and the database's differ by {skew.total_seconds():.1f} s.")
