"""The software and hardware a job ran on, kept once: canonical JSON, compressed."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class Environment(Base):
    __tablename__ = "environment"
    __table_args__ = (UniqueConstraint("project_id", "id"), UniqueConstraint("project_id", "digest"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    digest: Mapped[bytes]
    body: Mapped[bytes]
    created_at: Mapped[datetime]
