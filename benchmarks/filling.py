"""A population in the tables themselves: a million checkpoints by way of the API would take an hour.

One checkpoint is registered over the API, so that benchmarks and metrics are there; the others repeat it with scores of
their own. Only what a search reads is written: runs, attempts, checkpoints and the scores that count now.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from sqlalchemy import make_url

from benchmarks import workload
from benchmarks.service import Service
from registry.ids import new_ids

PART: Final = 20_000  # checkpoints a transaction
SIZES: Final = (1_400_000_000, 7_000_000_000, 13_000_000_000)

Row = tuple[Any, ...]


class Writer:
    """Rows into one of the two databases, as fast as each takes them."""

    def __init__(self, home: Path, url: str | None) -> None:
        self.is_sqlite = url is None
        if url is None:
            self._sqlite = sqlite3.connect(home / "cairn.db", isolation_level=None)
            self._sqlite.execute("PRAGMA synchronous = OFF")
            self._sqlite.execute("PRAGMA cache_size = -400000")
        else:
            import psycopg

            plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
            self._postgresql = psycopg.connect(plain, autocommit=True)

    def read(self, query: str) -> list[Row]:
        connection: Any = self._sqlite if self.is_sqlite else self._postgresql
        return list(connection.execute(query).fetchall())

    def write(self, table: str, columns: Sequence[str], rows: Iterator[Row]) -> None:
        names = ", ".join(columns)
        if self.is_sqlite:
            self._sqlite.execute("BEGIN")
            marks = ", ".join("?" * len(columns))
            self._sqlite.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", rows)
            self._sqlite.execute("COMMIT")
        else:
            with self._postgresql.cursor().copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in rows:
                    copy.write_row(row)

    def run(self, statement: str) -> None:
        connection: Any = self._sqlite if self.is_sqlite else self._postgresql
        connection.execute(statement)


def fill(service: Service, writer: Writer, count: int) -> str:
    """As many checkpoints with twenty scores each; gives the id of the one that was registered over the API."""
    (first,) = service.call("POST", "/checkpoints:batch", [workload.batch_item(0)])["results"]
    index = "ix_current_score_project_id_score_metric_id_value_checkpoint_id"
    (definition,) = (
        writer.read(f"SELECT sql FROM sqlite_master WHERE name = '{index}'")
        if writer.is_sqlite
        else writer.read(f"SELECT indexdef FROM pg_indexes WHERE indexname = '{index}'")
    )
    writer.run(f"DROP INDEX {index}")
    series = writer.read("SELECT project_id, score_metric_id, series_id FROM current_score ORDER BY score_metric_id")
    names = _columns(writer, "checkpoint")
    (like,) = writer.read(f"SELECT {', '.join(names)} FROM checkpoint")
    runs = _runs(writer, count)
    for start in range(0, count, PART):
        size = min(PART, count - start)
        ids = new_ids(size)
        numbers = range(start, start + size)
        writer.write(
            "checkpoint", names, (_checkpoint(names, like, *each, runs) for each in zip(ids, numbers, strict=True))
        )
        writer.write("current_score", _SCORE, _scores(start, ids, series))
    writer.run(definition[0])
    writer.run("ANALYZE")
    return str(first["id"])


_SCORE: Final = (
    *("project_id", "checkpoint_id", "score_metric_id", "series_id", "value", "evaluated_micros", "arrival"),
)


def _columns(writer: Writer, table: str) -> list[str]:
    if writer.is_sqlite:
        return [str(row[1]) for row in writer.read(f"PRAGMA table_info({table})")]
    query = f"SELECT column_name FROM information_schema.columns WHERE table_name = '{table}'"
    return [str(row[0]) for row in writer.read(query)]


def _runs(writer: Writer, count: int) -> list[tuple[int, int]]:
    """(run id, attempt id) of new runs like the one that is there."""
    amount = count // workload.CHECKPOINTS_PER_RUN + 1
    made = list(zip(new_ids(amount), new_ids(amount), strict=True))
    for table, ids in (("run", 0), ("attempt", 1)):
        names = _columns(writer, table)
        (like,) = writer.read(f"SELECT {', '.join(names)} FROM {table}")
        rows = []
        for number, pair in enumerate(made):
            row = dict(zip(names, like, strict=True)) | {"id": pair[ids]}
            if table == "run":
                row |= {"name": f"filled-{number:05d}", "parameter_count": SIZES[number % len(SIZES)]}
            else:
                row |= {"run_id": pair[0], "key": f"filled-{number}"}
            rows.append(tuple(row[name] for name in names))
        writer.write(table, names, iter(rows))
    return made


def _checkpoint(names: Sequence[str], like: Row, identity: int, number: int, runs: Sequence[tuple[int, int]]) -> Row:
    run, attempt = runs[number // workload.CHECKPOINTS_PER_RUN]
    own = {"id": identity, "run_id": run, "attempt_id": attempt, "step": workload.step(number)}
    return tuple(own.get(name, value) for name, value in zip(names, like, strict=True))


def _scores(start: int, ids: range, series: Sequence[Row]) -> Iterator[Row]:
    """Uniform values with four decimals; the benchmarks of one checkpoint lean the same way, as those of a model do."""
    chance = np.random.default_rng(start)
    skill = chance.random((len(ids), 1))
    values = np.round(0.5 * skill + 0.5 * chance.random((len(ids), len(series))), 4)
    for row, identity in enumerate(ids):
        for column, (project, metric, one) in enumerate(series):
            yield project, identity, metric, one, float(values[row, column]), 0, identity
