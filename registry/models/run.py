"""A run: one training job, across restarts."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class Run(Base):
    __tablename__ = "run"
    __table_args__ = (
        UniqueConstraint("project_id", "name"),
        UniqueConstraint("project_id", "id"),
        within_project("config_id", "config"),
        Index(None, "project_id", "config_id"),
        CheckConstraint("parameter_count > 0", name="parameter_count"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    name: Mapped[str]
    kind: Mapped[str | None]  # pretrain, sft, dpo ...: the team's own words
    owner: Mapped[str | None]
    team: Mapped[str | None]
    model_family: Mapped[str | None]
    parameter_count: Mapped[int | None]
    config_id: Mapped[int | None]
    started_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
