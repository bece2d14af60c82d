"""A search for the checkpoint after which a score fell. Its state is here and in its observations, nowhere else."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class Bisect(Base):
    __tablename__ = "bisect"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "digest"),
        within_project("good_id", "checkpoint"),
        within_project("bad_id", "checkpoint"),
        Index(None, "project_id", "good_id"),
        Index(None, "project_id", "bad_id"),
        CheckConstraint("(benchmark IS NULL) <> (capability IS NULL)", name="target"),
        CheckConstraint("discordance > 0 AND discordance <= 1", name="discordance"),
        CheckConstraint("drop_size > 0", name="drop_size"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    digest: Mapped[bytes]  # of the two ends and the target: the same question is the same search
    good_id: Mapped[int]
    bad_id: Mapped[int]
    benchmark: Mapped[str | None]
    metric: Mapped[str | None]
    filter: Mapped[str | None]
    capability: Mapped[str | None]
    good_level: Mapped[float]  # on the common scale of registry.evals.normalise, as is the next
    bad_level: Mapped[float]
    good_stderr: Mapped[float]  # of the two levels, on the same scale; 0 where unknown
    bad_stderr: Mapped[float]
    drop_size: Mapped[float]  # on the benchmark's own scale, as a fraction of its span
    discordance: Mapped[float]  # share of items whose answer changes between two checkpoints
    path: Mapped[bytes]  # compressed JSON: the ids of the checkpoints between, in order, both ends included
    created_by: Mapped[str]
    created_at: Mapped[datetime]
