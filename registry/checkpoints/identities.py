"""The identities of very many checkpoints, without loading anything else of them."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, cast, column, extract, func, select, type_coerce
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from registry.db import Base, Int64
from registry.models import Checkpoint, Project, Run

_checkpoint: Any = Base.metadata.tables[Checkpoint.__tablename__].c


class PlainIdentity(NamedTuple):
    """As CheckpointIdentity, with the ids of project and run for names that are given once.

    `saved_micros`: microseconds since 1970.
    """

    id: int
    project_id: int
    run_id: int
    attempt: int
    step: int
    kind: str
    saved_micros: int


class Identities(NamedTuple):
    rows: list[PlainIdentity]
    projects: dict[int, str]
    runs: dict[int, str]


def list_identities(session: Session, checkpoint_ids: Sequence[int]) -> Identities:
    """The identities of those checkpoints that exist, in the order of their ids; three statements."""
    ids = sorted(set(checkpoint_ids))
    rows = sorted(_select(session, ids))
    run_ids, project_ids = {row.run_id for row in rows}, {row.project_id for row in rows}
    return Identities(
        rows,
        dict(session.execute(select(Project.id, Project.name).where(Project.id.in_(project_ids))).all()),
        _run_names(session, run_ids),
    )


def saved_micros(session: Session) -> Any:
    """The time of saving as a number, for statements whose rows are read as the driver gives them."""
    if session.get_bind().dialect.name == "sqlite":
        return type_coerce(_checkpoint.saved_at, Int64)
    return cast(extract("epoch", _checkpoint.saved_at) * 1_000_000, BigInteger)


def _select(session: Session, ids: list[int]) -> list[PlainIdentity]:
    """Any number of ids are one parameter: thousands of single ones take longer to write than their rows to read."""
    given: Any
    if session.get_bind().dialect.name == "sqlite":
        every, given = (
            select(column("value", BigInteger)).select_from(func.json_each(bindparam("ids"))),
            json.dumps(ids),
        )
        here = _checkpoint.id.in_(every)
    else:
        here, given = _checkpoint.id == func.any(bindparam("ids", type_=postgresql.ARRAY(BigInteger))), ids
    query = select(
        *(_checkpoint.id, _checkpoint.project_id, _checkpoint.run_id, _checkpoint.attempt_number),
        *(_checkpoint.step, _checkpoint.kind, saved_micros(session)),
    ).where(here)
    result: Any = session.connection().execute(query, {"ids": given})
    with result:
        return list(map(PlainIdentity._make, result.cursor.fetchall()))


def _run_names(session: Session, run_ids: set[int]) -> dict[int, str]:
    names: dict[int, str] = {}
    ordered = sorted(run_ids)
    for start in range(0, len(ordered), 5_000):
        query = select(Run.id, Run.name).where(Run.id.in_(ordered[start : start + 5_000]))
        names.update(session.execute(query).all())
    return names
