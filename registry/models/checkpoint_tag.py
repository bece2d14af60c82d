"""A tag of a checkpoint."""

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class CheckpointTag(Base):
    __tablename__ = "checkpoint_tag"
    __table_args__ = (
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "name", "value", "checkpoint_id"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]
