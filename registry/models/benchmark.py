"""A benchmark that occurs in a project. What is null here, the shipped table says (registry.evals.catalogue)."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of
from registry.types import Direction


class Benchmark(Base):
    __tablename__ = "benchmark"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "name"),
        CheckConstraint("sample_count > 0", name="sample_count"),
        one_of("direction", Direction),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]  # as the results wrote it
    capability: Mapped[str | None]  # '' is none, whatever the shipped table says
    direction: Mapped[str | None]
    scale: Mapped[str | None]
    chance: Mapped[float | None]
    sample_count: Mapped[int | None]
    preferred_metrics: Mapped[str | None]  # JSON list of [metric, filter]
    created_at: Mapped[datetime]
    same_as: Mapped[str | None]  # another name for this benchmark of the table, whose row it is read by
    note: Mapped[str | None]
