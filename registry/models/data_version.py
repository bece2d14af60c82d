"""A version of the training data, by name and mix."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class DataVersion(Base):
    __tablename__ = "data_version"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "name", "mix_digest"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    mix_digest: Mapped[bytes]  # of the sources and weights; of nothing where the mix is unknown
    uri: Mapped[str | None]
    created_at: Mapped[datetime]
