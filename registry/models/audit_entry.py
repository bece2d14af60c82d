"""Who changed what: tokens, aliases, amendments, deletions."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class AuditEntry(Base):
    __tablename__ = "audit_entry"
    __table_args__ = (Index(None, "project_id", "id"), Index(None, "subject_id"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.id"))
    at: Mapped[datetime]
    actor: Mapped[str]
    action: Mapped[str]  # alias.move, checkpoint.amend, token.create ...
    subject_id: Mapped[int | None]
    detail: Mapped[str | None]  # JSON
