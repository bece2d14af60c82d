"""An answer as it was given, with the question: a record that later scores and copies do not change."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of

KINDS = ("compare", "rollback", "search")


class Decision(Base):
    __tablename__ = "decision"
    __table_args__ = (
        Index(None, "project_id", "id"),
        Index(None, "other_project_id"),
        one_of("kind", KINDS),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    other_project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id"))  # of the other side of a comparison
    kind: Mapped[str]
    request: Mapped[bytes]  # compressed canonical JSON, as is the next
    answer: Mapped[bytes]
    note: Mapped[str | None]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
