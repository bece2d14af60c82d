"""A checkpoint as one link's tracker knows it: read from there, or told to it by us."""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project


class TrackerCheckpoint(Base):
    __tablename__ = "tracker_checkpoint"
    __table_args__ = (
        UniqueConstraint("project_id", "link_id", "external_id"),
        within_project("link_id", "tracker_link", ondelete="CASCADE"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "checkpoint_id"),
        one_of("origin", ("there", "here")),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    external_id: Mapped[str]
    origin: Mapped[str]  # there: imported; here: made there by us
    digest: Mapped[bytes | None]  # of what it was told; null: nothing yet
    changed_at: Mapped[datetime]
