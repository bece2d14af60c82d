"""A project that a bound token may touch."""

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class TokenProject(Base):
    __tablename__ = "token_project"
    __table_args__ = (Index(None, "project_id"), {"sqlite_with_rowid": False})

    token_id: Mapped[int] = mapped_column(ForeignKey("token.id"), primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"), primary_key=True, autoincrement=False)
