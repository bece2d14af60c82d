"""One source of a data version, with its weight in the mix and the tokens it holds, where known."""

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class DataSource(Base):
    __tablename__ = "data_source"
    __table_args__ = (
        within_project("data_version_id", "data_version"),
        CheckConstraint("weight >= 0", name="weight"),
        CheckConstraint("tokens >= 0", name="tokens"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    data_version_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    source: Mapped[str] = mapped_column(primary_key=True)
    weight: Mapped[float | None]
    tokens: Mapped[int | None]
