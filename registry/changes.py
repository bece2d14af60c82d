"""Which checkpoints, attempts and benchmarks changed since somebody looked: how processes that keep columns agree.

Each change takes a position in the transaction that makes it. On SQLite one connection writes at a time, so positions
become visible in their order, and a reader goes on after the last that it saw. On PostgreSQL transactions end in any
order: the position is the transaction's own number, and a reader goes on from the oldest transaction that was still
running when it looked. What ends later has a number from there on; what is read twice does no harm.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import bindparam, text
from sqlalchemy.orm import Session

from registry.together import execute_together
from registry.upsert import chunks

_NOTE: Final = {
    "sqlite": text(
        "INSERT INTO population_change (project_id, subject_id, position)"
        " SELECT :project, value, (SELECT coalesce(max(position), 0) + 1 FROM population_change)"
        " FROM json_each(:subjects) WHERE true"
        " ON CONFLICT (project_id, subject_id) DO UPDATE SET position = excluded.position"
    ),
    "postgresql": text(
        "INSERT INTO population_change (project_id, subject_id, position)"
        " SELECT :project, subject, pg_current_xact_id()::text::bigint"
        " FROM json_array_elements_text(CAST(:subjects AS json)) AS each (value),"
        " LATERAL (SELECT each.value::bigint AS subject) AS number"
        " ON CONFLICT (project_id, subject_id) DO UPDATE SET position = excluded.position"
    ),
}
# A number that no transaction of this server has had yet is of a server that the rows were copied from.
_READ: Final = {
    "sqlite": text(
        "SELECT position, subject_id FROM population_change WHERE position > :since AND project_id IN :projects"
    ).bindparams(bindparam("projects", expanding=True)),
    "postgresql": text(
        "SELECT pg_snapshot_xmin(now.snapshot)::text::bigint, change.subject_id"
        " FROM (SELECT pg_current_snapshot() AS snapshot) AS now LEFT JOIN population_change AS change"
        " ON change.position >= :since AND change.position < pg_snapshot_xmax(now.snapshot)::text::bigint"
        " AND change.project_id IN :projects"
    ).bindparams(bindparam("projects", expanding=True)),
}
_NEWEST: Final = {
    "sqlite": text("SELECT coalesce(max(position), 0) FROM population_change"),
    "postgresql": text("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"),
}


@dataclass(frozen=True, slots=True)
class Changes:
    """`subjects`: ids of what changed since the mark before; `mark`: from where to ask the next time."""

    subjects: frozenset[int]
    mark: int


def note_changes(session: Session, project_id: int, subjects: Iterable[int]) -> None:
    """Say that these checkpoints, attempts or benchmarks are to be read again, once this transaction has ended."""
    for chunk in chunks(sorted(set(subjects)), size=5_000):
        execute_together(session, _NOTE[_dialect(session)], {"project": project_id, "subjects": str(chunk)})


def mark_of(session: Session) -> int:
    """The mark of now: everything that is visible to a read after it, and maybe a little that comes later."""
    return int(session.execute(_NEWEST[_dialect(session)]).scalar_one())


def changes_since(session: Session, project_ids: Collection[int], mark: int) -> Changes:
    """What changed in the projects since a mark, by one statement over an index."""
    rows: Any = session.execute(_READ[_dialect(session)], {"since": mark, "projects": sorted(project_ids)}).all()
    subjects = frozenset(row[1] for row in rows if row[1] is not None)
    return Changes(subjects, max((row[0] for row in rows), default=mark))


def _dialect(session: Session) -> str:
    return session.get_bind().dialect.name
