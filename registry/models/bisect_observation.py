"""A score that somebody measured for a search. Scores that are recorded anyway count by themselves, without a row."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class BisectObservation(Base):
    __tablename__ = "bisect_observation"
    __table_args__ = (
        within_project("bisect_id", "bisect"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "checkpoint_id"),
        CheckConstraint("stderr >= 0 AND n_samples > 0", name="sizes"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    bisect_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # 63 bits of all that it says
    value: Mapped[float]  # as measured, on the benchmark's own scale
    stderr: Mapped[float | None]
    n_samples: Mapped[int | None]
    arrival: Mapped[int]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
