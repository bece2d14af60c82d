"""One dotted path of a configuration, for filters: as text, and as a number where it is one."""

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class ConfigEntry(Base):
    __tablename__ = "config_entry"
    __table_args__ = (
        within_project("config_id", "config"),
        Index(None, "project_id", "path", "number", "config_id"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    config_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    path: Mapped[str] = mapped_column(primary_key=True)
    number: Mapped[float | None]  # finite, or null
    text: Mapped[str]
