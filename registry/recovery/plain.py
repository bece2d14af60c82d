"""Rows as the driver gives them: tuples without names, for statements that read a run's ten thousand checkpoints.

Named rows of SQLAlchemy cost as much as the statement itself; only plain columns (numbers, text) may be read like this.
"""

from typing import Any

from sqlalchemy import Select
from sqlalchemy.orm import Session


def plain_rows(session: Session, statement: Select[Any]) -> list[tuple[Any, ...]]:
    """Every row of the statement."""
    with session.connection().execute(statement) as result:
        return list(result.cursor.fetchall()) if result.cursor is not None else []
