"""What a watcher knows between looks: one SQLite file for each root and run, on the host that watches.

Losing it costs time, never data: a look then finds everything recorded already.
"""

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE IF NOT EXISTS place (
    path TEXT PRIMARY KEY, candidate TEXT, print TEXT, look TEXT, run TEXT, attempt INTEGER, step INTEGER,
    modified REAL, state TEXT, checkpoint TEXT, uri TEXT, has_loss INTEGER, files TEXT
);
CREATE TABLE IF NOT EXISTS tail (path TEXT PRIMARY KEY, file TEXT, offset INTEGER, attempt INTEGER, step INTEGER);
CREATE TABLE IF NOT EXISTS point (
    run TEXT, attempt INTEGER, name TEXT, step INTEGER, value TEXT, sent INTEGER DEFAULT 0,
    PRIMARY KEY (run, attempt, name, step)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS point_unsent ON point (run, attempt, name, step) WHERE sent = 0;
CREATE TABLE IF NOT EXISTS result (path TEXT PRIMARY KEY, print TEXT, outcome TEXT);
CREATE TABLE IF NOT EXISTS said (text TEXT PRIMARY KEY);
"""
# A file of another number is made anew: the next look finds out what it held.
SCHEMA = 2
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Known:
    """A checkpoint as it was last seen. `state`: pending or committed; `files`: what they were (`prints`)."""

    path: str
    print: str
    run: str
    attempt: int
    step: int
    modified: float | None
    state: str
    checkpoint: str
    uri: str
    has_loss: int
    files: str


def state_file(root: str, project: str, run: str, environ: Mapping[str, str] | None = None) -> Path:
    """`$XDG_STATE_HOME/cairn/watch/<digest>.db`, by default below ~/.local/state."""
    env = os.environ if environ is None else environ
    base = env.get("XDG_STATE_HOME") or Path(env.get("HOME") or Path.home()) / ".local" / "state"
    key = json.dumps([root, project, run]).encode()
    return Path(base) / "cairn" / "watch" / f"{hashlib.blake2b(key, digest_size=10).hexdigest()}.db"


class State:
    """A context manager. One look is one transaction: what it found out is kept whole, or not at all."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._connection = sqlite3.connect(path, timeout=30.0)
        self._connection.row_factory = sqlite3.Row
        if self._connection.execute("PRAGMA user_version").fetchone()[0] not in (0, SCHEMA):
            for (name,) in list(self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")):
                self._connection.execute(f"DROP TABLE IF EXISTS {name}")
        self._connection.executescript(_TABLES + f"PRAGMA user_version = {SCHEMA};")

    def close(self) -> None:
        self._connection.close()

    def keep(self) -> None:
        self._connection.commit()

    def forget(self) -> None:
        """Drops what this look found out, after a failure in its middle."""
        self._connection.rollback()

    def rows(self, question: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        yield from self._connection.execute(question, values)

    def one(self, question: str, values: Sequence[Any] = ()) -> Any:
        row = self._connection.execute(question, values).fetchone()
        return None if row is None else row[0]

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self._connection.execute(statement, values).rowcount

    def change_many(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, values)

    def known(self) -> dict[str, Known]:
        """By path relative to the root, every checkpoint that is recorded."""
        question = """
            SELECT path, print, run, attempt, step, modified, state, checkpoint, uri, has_loss, files FROM place
            WHERE checkpoint IS NOT NULL
        """
        return {row["path"]: Known(**row) for row in map(dict, self.rows(question))}

    def is_news(self, text: str) -> bool:
        """Whether this was not said before: the same trouble is told once, not at every look."""
        return self.change("INSERT OR IGNORE INTO said VALUES (?)", (text,)) == 1
