"""The identities of very many checkpoints, without loading anything else of them."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, bindparam, column, func, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from registry.db import Base
from registry.models import Checkpoint, Project, Run

_checkpoint = Base.metadata.tables[Checkpoint.__tablename__].c
_COLUMNS = select(
    *(_checkpoint.id, _checkpoint.project_id, _checkpoint.run_id, _checkpoint.attempt_number),
    *(_checkpoint.step, _checkpoint.kind, _checkpoint.saved_at),
)
# Any number of ids as one parameter: thousands of single ones take longer to write than their rows to read.
_BY_JSON = _COLUMNS.where(
    _checkpoint.id.in_(select(column("value", BigInteger)).select_from(func.json_each(bindparam("ids"))))
)
_BY_ARRAY = _COLUMNS.where(_checkpoint.id == func.any(bindparam("ids", type_=postgresql.ARRAY(BigInteger))))


class PlainIdentity(NamedTuple):
    """As CheckpointIdentity, with the ids of project and run for names that are given once."""

    id: int
    project_id: int
    run_id: int
    attempt: int
    step: int
    kind: str
    saved_at: datetime


class Identities(NamedTuple):
    rows: list[PlainIdentity]
    projects: dict[int, str]
    runs: dict[int, str]


def list_identities(session: Session, checkpoint_ids: Sequence[int]) -> Identities:
    """The identities of those checkpoints that exist, in the order of their ids; three statements."""
    ids = sorted(set(checkpoint_ids))
    found = _select(session, ids)
    rows = sorted(map(PlainIdentity._make, found))
    run_ids, project_ids = {row.run_id for row in rows}, {row.project_id for row in rows}
    return Identities(
        rows,
        dict(session.execute(select(Project.id, Project.name).where(Project.id.in_(project_ids))).all()),
        _run_names(session, run_ids),
    )


def _select(session: Session, ids: list[int]) -> Sequence[Any]:
    if session.get_bind().dialect.name == "sqlite":
        return session.execute(_BY_JSON, {"ids": json.dumps(ids)}).all()
    return session.execute(_BY_ARRAY, {"ids": ids}).all()


def _run_names(session: Session, run_ids: set[int]) -> dict[int, str]:
    names: dict[int, str] = {}
    ordered = sorted(run_ids)
    for start in range(0, len(ordered), 5_000):
        query = select(Run.id, Run.name).where(Run.id.in_(ordered[start : start + 5_000]))
        names.update(session.execute(query).all())
    return names
