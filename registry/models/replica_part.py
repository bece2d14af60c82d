"""What one host holds of a replica that is spread over hosts."""

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class ReplicaPart(Base):
    __tablename__ = "replica_part"
    __table_args__ = (
        within_project("replica_id", "replica"),
        CheckConstraint("bytes >= 0", name="bytes"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    replica_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(primary_key=True)
    ranks: Mapped[str]  # '0-3,8': ascending ranges
    uri: Mapped[str]
    bytes: Mapped[int | None]
    save_id: Mapped[str | None]  # parts of different saves never make one replica
