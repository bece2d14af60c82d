"""A tag of a run."""

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class RunTag(Base):
    __tablename__ = "run_tag"
    __table_args__ = (
        within_project("run_id", "run"),
        Index(None, "project_id", "name", "value", "run_id"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    run_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]
