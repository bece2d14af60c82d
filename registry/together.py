"""Writing to several tables at once: what belongs to new rows goes to PostgreSQL as one statement.

Half of what a single registration costs is the way to the database and back. SQLite has no such statement and no such
way: there everything is sent at once, one after the other.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, TextClause
from sqlalchemy.orm import Session

from registry.array_inserts import compiled

T = TypeVar("T")
TURN: Final = 50  # items whose rows go together: PostgreSQL writes them while the next ones are prepared
_WAITING: Final = "together"  # in a session's info

Waiting = list[tuple[str, Mapping[str, Any]]]  # texts of statements, each with its parameters


@contextmanager
def together(session: Session) -> Iterator[None]:
    """What `insert_all` and `execute_together` are given in this block is sent when it ends.

    Nothing in the block may read what it writes; foreign keys are looked at when all of it is there.
    """
    with _collected(session) as waiting:
        yield
    _send(session.connection(), waiting)


def in_turns(session: Session, items: Sequence[T], write: Callable[[Sequence[T]], None]) -> None:
    """`together` for very many: while one part of them is written, `write` prepares the next.

    `write` gets some of the items, and only inserts: nothing else may use the connection meanwhile.
    """
    if len(items) <= TURN:
        with together(session):
            write(items)
        return
    connection = session.connection()
    with ThreadPoolExecutor(1, "together") as thread:
        before: Future[None] | None = None
        for start in range(0, len(items), TURN):
            with _collected(session) as waiting:
                write(items[start : start + TURN])
            if before is not None:
                before.result()
            before = thread.submit(_send, connection, waiting)
        if before is not None:
            before.result()


def execute_together(session: Session, statement: TextClause, given: Mapping[str, Any]) -> None:
    """Execute a statement that writes; within `together`, with the others."""
    waiting = waiting_of(session)
    if waiting is None:
        session.connection().execute(statement, given)
    else:
        waiting.append((compiled(statement), given))


def waiting_of(session: Session) -> Waiting | None:
    """Where statements are left to be sent together; None where they are to be sent at once."""
    return session.info.get(_WAITING)


@contextmanager
def _collected(session: Session) -> Iterator[Waiting]:
    waiting: Waiting = []
    if session.get_bind().dialect.name == "sqlite":
        yield waiting
        return
    session.info[_WAITING] = waiting
    try:
        yield waiting
    finally:
        del session.info[_WAITING]


def _send(connection: Connection, waiting: Waiting) -> None:
    if waiting:
        given = {f"{at}_{name}": value for at, (_, values) in enumerate(waiting) for name, value in values.items()}
        connection.exec_driver_sql(_joined(tuple(text for text, _ in waiting)), given)


@lru_cache(maxsize=512)
def _joined(texts: tuple[str, ...]) -> str:
    """One statement of several; each has its parameters under names of its own."""
    *first, last = (text.replace("%(", f"%({at}_") for at, text in enumerate(texts))
    before = ", ".join(f"part_{at} AS ({text})" for at, text in enumerate(first))
    return f"WITH {before} {last}" if before else last
