"""A (benchmark, metric, filter) of a project: what a filter or a column names. '' is no metric, no filter."""

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class ScoreMetric(Base):
    __tablename__ = "score_metric"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "benchmark_id", "metric", "filter"),
        within_project("benchmark_id", "benchmark"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    benchmark_id: Mapped[int]
    metric: Mapped[str]
    filter: Mapped[str]
