"""The identities of very many checkpoints, without loading anything else of them."""

from collections.abc import Iterable
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, cast, extract, select, type_coerce
from sqlalchemy.orm import Session

from registry.db import Base, Int64
from registry.many_ids import is_among
from registry.models import Checkpoint, Project, Run

_checkpoint: Any = Base.metadata.tables[Checkpoint.__tablename__].c

# As CheckpointIdentity: id, project's id, run's id, attempt, step, kind, and microseconds since 1970. As the driver
# gives them, since a row of its own class for each takes as long as reading it.
PlainIdentity = tuple[int, int, int, int, int, str, int]


class Identities(NamedTuple):
    """Rows in the order of their ids; projects and runs by id, with their names."""

    rows: list[PlainIdentity]
    projects: dict[int, str]
    runs: dict[int, str]


def list_identities(session: Session, checkpoint_ids: Iterable[int]) -> Identities:
    """The identities of those checkpoints that exist; three statements."""
    query = select(
        *(_checkpoint.id, _checkpoint.project_id, _checkpoint.run_id, _checkpoint.attempt_number),
        *(_checkpoint.step, _checkpoint.kind, saved_micros(session)),
    ).where(is_among(session, _checkpoint.id, checkpoint_ids))
    result: Any = session.connection().execute(query)
    with result:
        rows = sorted(result.cursor.fetchall(), key=itemgetter(0))
    return Identities(
        rows, _names(session, Project, {row[1] for row in rows}), _names(session, Run, {row[2] for row in rows})
    )


def saved_micros(session: Session) -> Any:
    """The time of saving as a number, for statements whose rows are read as the driver gives them."""
    if session.get_bind().dialect.name == "sqlite":
        return type_coerce(_checkpoint.saved_at, Int64)
    return cast(extract("epoch", _checkpoint.saved_at) * 1_000_000, BigInteger)


def _names(session: Session, table: type[Project] | type[Run], ids: Iterable[int]) -> dict[int, str]:
    columns = Base.metadata.tables[table.__tablename__].c
    query = select(columns.id, columns.name).where(is_among(session, columns.id, ids))
    return dict(session.execute(query).all())
