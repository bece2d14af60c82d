"""A stretch of a curve such as the loss: steps and values of one attempt, compressed."""

from sqlalchemy import CheckConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class SeriesChunk(Base):
    __tablename__ = "series_chunk"
    __table_args__ = (
        within_project("attempt_id", "attempt"),
        CheckConstraint("count > 0 AND first_step >= 0 AND last_step >= first_step", name="steps"),
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    attempt_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(primary_key=True)
    first_step: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[bytes] = mapped_column(primary_key=True)  # 16 bytes, of the body: sending it again adds nothing
    last_step: Mapped[int]
    count: Mapped[int]
    arrival: Mapped[int]
    body: Mapped[bytes]
