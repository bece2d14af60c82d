"""Ids that a process has met before, of what stays, and stays the same.

Nothing deletes a run, a config, a series of scores or whatever else is kept here, nor changes what it is found by. So
what was read or written in a transaction that ended well needs no further look; what a transaction learns counts from
its commit on. An error of the database makes the process forget everything: it may have been brought back to an
earlier state, and the next write looks again.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from sqlalchemy import Engine, event
from sqlalchemy.orm import Session, sessionmaker

MOST: Final = 50_000  # ids of a process: about 10 MB
_KNOWN: Final = "known ids"
_LEARNED: Final = "learned ids"

T = TypeVar("T", bytes, int)

Key = tuple[str, int, bytes | int]  # table, project, and the digest or the id that a row is found by


class KnownIds:
    """What this process knows, for all sessions of a database."""

    def __init__(self) -> None:
        self.ids: dict[Key, Any] = {}

    def learn(self, found: Mapping[Key, Any]) -> None:
        if len(self.ids) + len(found) > MOST:
            self.ids = {}
        self.ids |= found

    def forget(self, _error: object = None) -> None:
        self.ids = {}


def remember_for(sessions: "sessionmaker[Session]", engine: Engine) -> None:
    """Let the sessions that write know and learn ids."""
    known = KnownIds()
    sessions.configure(info={_KNOWN: known})
    event.listen(sessions, "after_commit", _learn)
    event.listen(sessions, "after_soft_rollback", _unlearn)
    event.listen(engine, "handle_error", known.forget)


def recall(session: Session, table: str, project_id: int, wanted: Iterable[T]) -> dict[T, Any]:
    """What is known already, by those of the digests or ids that are."""
    known = session.info.get(_KNOWN)
    if known is None:
        return {}
    ids = known.ids
    return {each: ids[key] for each in wanted if (key := (table, project_id, each)) in ids}


def keep(session: Session, table: str, project_id: int, found: Mapping[T, Any]) -> None:
    """Remember what this transaction found or made, once it has committed."""
    if found and _KNOWN in session.info:
        learned = session.info.setdefault(_LEARNED, {})
        learned |= {(table, project_id, each): value for each, value in found.items()}


def _learn(session: Session) -> None:
    if session.get_nested_transaction() is None and (learned := session.info.pop(_LEARNED, None)):
        session.info[_KNOWN].learn(learned)


def _unlearn(session: Session, _previous: object) -> None:
    """A savepoint that was taken back may have made some of what was learned."""
    session.info.pop(_LEARNED, None)
