"""What a scan has found, in a temporary database: memory stays the same for ten checkpoints and for a million."""

import json
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cairn.scan.look import Look

_TABLES = """
CREATE TABLE found (
    id INTEGER PRIMARY KEY, path TEXT, folder TEXT, name TEXT, uri TEXT, step INTEGER, complete INTEGER,
    temporary INTEGER, modified REAL, bytes INTEGER, files INTEGER, format TEXT, resumability TEXT,
    parameters INTEGER, said_run TEXT, said_attempt INTEGER, said_kind TEXT, reason TEXT, fields TEXT, notes TEXT,
    run TEXT, hint INTEGER, attempt INTEGER, kind TEXT, status TEXT, note TEXT DEFAULT '', checkpoint TEXT,
    again INTEGER DEFAULT 0, ended INTEGER DEFAULT 0, began TEXT
);
CREATE TABLE parent (child INTEGER, relation TEXT, run TEXT, attempt INTEGER, step INTEGER, kind TEXT);
CREATE TABLE tracker (folder TEXT PRIMARY KEY, step INTEGER, said TEXT, modified REAL);
CREATE TABLE problem (path TEXT, reason TEXT);
CREATE TABLE remark (run TEXT, text TEXT);
"""
_INDEXES = """
CREATE INDEX IF NOT EXISTS found_folder ON found (folder);
CREATE INDEX IF NOT EXISTS found_run ON found (run, attempt, step);
CREATE INDEX IF NOT EXISTS parent_child ON parent (child);
"""
_COLUMNS = (
    *("path", "folder", "name", "uri", "step", "complete", "temporary", "modified", "bytes", "files", "format"),
    *("resumability", "parameters", "said_run", "said_attempt", "said_kind", "reason", "fields", "notes"),
    *("run", "attempt", "kind", "status", "note", "ended", "began"),
)
# What stands under the same name in `Look`.
_SAME = (
    *("path", "folder", "name", "uri", "step", "complete", "ended", "temporary", "bytes", "files", "format"),
    "resumability",
)
_INSERT = f"INSERT INTO found ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608
Row = Mapping[str, Any]


class Spool:
    """Rows of `found`, and what was said beside them. A context manager: the file goes when it ends."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="cairn-scan-")
        self._connection = sqlite3.connect(Path(self._folder.name) / "scan.db", check_same_thread=False)
        self._connection.row_factory = sqlite3.Row
        # It is thrown away at the end: nothing of it needs to survive a crash.
        self._connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _TABLES)

    def __enter__(self) -> "Spool":
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()
        self._folder.cleanup()

    def add(self, look: Look, **decided: Any) -> None:
        """`decided`: run, attempt, kind, status, note, where they are known already."""
        given = {
            **{name: getattr(look, name) for name in _SAME},
            "modified": look.modified_at,
            "parameters": look.parameter_count,
            "said_run": look.run,
            "said_attempt": look.attempt,
            "said_kind": look.kind,
            "reason": look.reason,
            "fields": json.dumps(look.fields),
            "notes": json.dumps(look.notes),
            "began": json.dumps(look.began) if look.began else None,
            "note": "",
            **decided,
        }
        number = self._connection.execute(_INSERT, [given.get(name) for name in _COLUMNS]).lastrowid
        for each in look.parents:
            self.parent(number or 0, **each)

    def parent(self, child: int, relation: str, run: str, attempt: int, step: int, kind: str) -> None:
        """The row `child` came from the checkpoint of that identity."""
        values = (child, relation, run, attempt, step, kind)
        self._connection.execute("INSERT INTO parent VALUES (?, ?, ?, ?, ?, ?)", values)

    def problem(self, path: str, reason: str) -> None:
        self._connection.execute("INSERT INTO problem VALUES (?, ?)", (path, reason))

    def remark(self, run: str, text: str) -> None:
        """Something to be said of a run with its plan."""
        self._connection.execute("INSERT INTO remark VALUES (?, ?)", (run, text))

    def tracker(self, folder: str, step: int, said: str, modified: float | None) -> None:
        values = (folder, step, said, modified)
        self._connection.execute("INSERT OR REPLACE INTO tracker VALUES (?, ?, ?, ?)", values)

    def index(self) -> None:
        """After the last row: makes the questions that follow quick."""
        self._connection.executescript(_INDEXES)

    def rows(self, question: str, values: Sequence[Any] = ()) -> Iterator[Row]:
        """The rows of a SELECT, a few at a time."""
        yield from self._connection.execute(question, values)

    def one(self, question: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row."""
        row = self._connection.execute(question, values).fetchone()
        return None if row is None else row[0]

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Answers the number of rows that it touched."""
        return self._connection.execute(statement, values).rowcount

    def script(self, statements: str) -> None:
        self._connection.executescript(statements)

    def change_many(self, statement: str, values: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(statement, values)
