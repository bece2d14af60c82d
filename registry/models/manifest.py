"""The file list of a copy, with digests: one compressed blob by digest, never a row per file."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class Manifest(Base):
    __tablename__ = "manifest"
    __table_args__ = (UniqueConstraint("digest"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[bytes]
    body: Mapped[bytes]
    created_at: Mapped[datetime]
