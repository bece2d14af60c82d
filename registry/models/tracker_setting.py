"""How a project is kept in step with trackers. No row: nothing is pushed, and links are refreshed every ten minutes."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class TrackerSetting(Base):
    __tablename__ = "tracker_setting"
    __table_args__ = (CheckConstraint("refresh_seconds >= 30", name="refresh_seconds"),)

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"), primary_key=True, autoincrement=False)
    push_mlflow: Mapped[bool]
    push_wandb: Mapped[bool]
    best_by: Mapped[str | None]  # the score that says which checkpoint is best, as a filter names it
    refresh_seconds: Mapped[int]
    changed_by: Mapped[str]
    changed_at: Mapped[datetime]
