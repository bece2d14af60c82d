"""A range of steps whose data an attempt skips, as after a loss spike. Both ends are included."""

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class AttemptSkip(Base):
    __tablename__ = "attempt_skip"
    __table_args__ = (
        within_project("attempt_id", "attempt"),
        CheckConstraint("from_step >= 0 AND to_step >= from_step", name="steps"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    from_step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    to_step: Mapped[int]
