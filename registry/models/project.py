"""A project: the namespace of runs, aliases and benchmarks, and the unit of access."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class Project(Base):
    __tablename__ = "project"
    __table_args__ = (UniqueConstraint("name"),)

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    created_at: Mapped[datetime]
