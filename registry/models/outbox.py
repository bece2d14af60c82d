"""Events written with the change they tell of, and delivered afterwards."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class OutboxEvent(Base):
    __tablename__ = "outbox"
    __table_args__ = (
        Index(
            "ix_outbox_waiting",
            "project_id",
            "id",
            sqlite_where=text("delivered_at IS NULL"),
            postgresql_where=text("delivered_at IS NULL"),
        ),
        Index(None, "project_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    topic: Mapped[str]  # checkpoint.committed, score.recorded, alias.moved ...
    subject_id: Mapped[int]
    payload: Mapped[str]  # JSON
    created_at: Mapped[datetime]
    delivered_at: Mapped[datetime | None]
