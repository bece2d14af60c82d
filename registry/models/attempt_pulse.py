"""The signs of life of an attempt: when it was last heard, and how long its last steps took.

Apart from the attempt itself, whose row stays as it is for the many writers of everything else.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class AttemptPulse(Base):
    __tablename__ = "attempt_pulse"
    __table_args__ = (
        within_project("attempt_id", "attempt"),
        CheckConstraint("step >= 0", name="step"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    heard_at: Mapped[datetime]  # by the service's own clock
    step: Mapped[int | None]  # the highest that a heartbeat named
    step_at: Mapped[datetime | None]  # the time of the heartbeat that named it first
    intervals: Mapped[str]  # JSON list of the last seconds between two heartbeats that each named a new step
