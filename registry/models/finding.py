"""What a watch found: a fall of a score, or a spike of the loss. It is kept when it is acknowledged or withdrawn."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

STATES = ("open", "acknowledged", "withdrawn")


class Finding(Base):
    __tablename__ = "finding"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        within_project("watch_id", "watch"),
        within_project("run_id", "run"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "watch_id", "id"),
        Index(None, "project_id", "run_id", "state"),
        Index(None, "project_id", "checkpoint_id"),
        Index(None, "project_id", "state", "id"),
        CheckConstraint("from_step >= 0 AND to_step >= 0", name="steps"),
        CheckConstraint("(acknowledged_at IS NULL) = (acknowledged_by IS NULL)", name="acknowledged"),
        one_of("state", STATES),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    watch_id: Mapped[int]
    run_id: Mapped[int]
    checkpoint_id: Mapped[int | None]  # whose score raised the alarm; null for the loss
    state: Mapped[str]
    from_step: Mapped[int]  # the last good point of a score, the first high one of the loss
    to_step: Mapped[int]
    sentence: Mapped[str]
    detail: Mapped[str]  # canonical JSON: the figures behind it
    opened_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    acknowledged_at: Mapped[datetime | None]
    acknowledged_by: Mapped[str | None]
    note: Mapped[str | None]
