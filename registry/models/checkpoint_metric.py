"""A number that the training loop reported with a checkpoint, such as grad_norm."""

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, number_or_special, within_project


class CheckpointMetric(Base):
    __tablename__ = "checkpoint_metric"
    __table_args__ = (
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "name", "value", "checkpoint_id"),
        *number_or_special(),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[float | None]
    special: Mapped[str | None]
