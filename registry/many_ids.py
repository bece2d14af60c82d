"""Any number of ids in one parameter: hundreds of single ones take longer to write than their rows to read."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, String, cast, column, func, literal, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.orm import Session

from registry.array_literals import array_literal


def is_among(session: Session, identity: ColumnElement[int], ids: Iterable[int]) -> ColumnElement[bool]:
    """The condition that a column holds one of these ids."""
    wanted = sorted(set(ids))
    if session.get_bind().dialect.name != "sqlite":
        return identity == func.any(cast(literal(array_literal(wanted), String), postgresql.ARRAY(BigInteger)))
    every: Any = func.json_each(str(wanted))
    return identity.in_(select(column("value", BigInteger)).select_from(every))
