"""A name that points at one committed checkpoint, such as production."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class Alias(Base):
    __tablename__ = "alias"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "name"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "checkpoint_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    checkpoint_id: Mapped[int]
    moved_at: Mapped[datetime]
