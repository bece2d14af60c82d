"""Scores that may be compared with each other: one metric under one way of evaluating.

The key is a digest of everything that makes two numbers comparable: n-shot, task version, harness and its version,
number of samples, and the caller's further keys (template hash, task hashes, judge ...).
"""

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class ScoreSeries(Base):
    __tablename__ = "score_series"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "digest"),
        within_project("score_metric_id", "score_metric"),
        Index(None, "project_id", "score_metric_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    score_metric_id: Mapped[int]
    digest: Mapped[bytes]  # 16 bytes, of the metric's names and every key below
    n_shot: Mapped[int | None]
    version: Mapped[str | None]
    harness: Mapped[str | None]
    harness_version: Mapped[str | None]
    n_samples: Mapped[int | None]
    comparability: Mapped[str]  # canonical JSON object of the further keys
