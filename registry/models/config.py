"""A configuration, kept once however many checkpoints have it.

`body` is canonical JSON (sorted keys, numbers written as they were sent), compressed. The bytes are the source:
a database's JSON type refuses NUL and rewrites 1.50 and 1e2.
"""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class Config(Base):
    __tablename__ = "config"
    __table_args__ = (UniqueConstraint("project_id", "id"), UniqueConstraint("project_id", "digest"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    digest: Mapped[bytes]  # SHA-256 of the canonical bytes
    body: Mapped[bytes]
    created_at: Mapped[datetime]
