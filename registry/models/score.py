"""Every eval result that arrived. An identical one adds nothing; a re-evaluation stands beside the first."""

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, number_or_special, within_project

NAMED = "replica_id IS NOT NULL"


class Score(Base):
    __tablename__ = "score"
    __table_args__ = (
        within_project("checkpoint_id", "checkpoint"),
        within_project("series_id", "score_series"),
        within_project("replica_id", "replica"),
        Index(None, "project_id", "series_id", "checkpoint_id"),
        # Few scores name a copy, so the others are left out of the index.
        Index(None, "project_id", "replica_id", sqlite_where=text(NAMED), postgresql_where=text(NAMED)),
        *number_or_special(),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    series_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # of value, error, time and replica
    value: Mapped[float | None]
    special: Mapped[str | None]
    stderr: Mapped[float | None]
    evaluated_at: Mapped[datetime | None]
    arrival: Mapped[int]  # an id: later ones are larger
    replica_id: Mapped[int | None]
