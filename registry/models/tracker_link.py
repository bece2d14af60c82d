"""Where a run is found in an experiment tracker."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project


class TrackerLink(Base):
    __tablename__ = "tracker_link"
    __table_args__ = (
        within_project("run_id", "run"),
        Index("uq_tracker_link_project_id", "project_id", "id", unique=True),
        Index(None, "project_id", "external_run_id"),
        UniqueConstraint("project_id", "run_id", "kind", "uri", "external_run_id"),
        one_of("kind", ("mlflow", "wandb")),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    run_id: Mapped[int]
    kind: Mapped[str]
    uri: Mapped[str]  # '' where the tracker's own default is meant
    entity: Mapped[str | None]
    external_project: Mapped[str | None]
    external_run_id: Mapped[str]
    created_at: Mapped[datetime]
