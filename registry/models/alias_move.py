"""One move of an alias: its history, never rewritten."""

from datetime import datetime

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class AliasMove(Base):
    __tablename__ = "alias_move"
    __table_args__ = (
        within_project("alias_id", "alias"),
        within_project("checkpoint_id", "checkpoint"),
        ForeignKeyConstraint(["project_id", "previous_id"], ["checkpoint.project_id", "checkpoint.id"]),
        Index(None, "project_id", "alias_id", "id"),
        Index(None, "project_id", "checkpoint_id"),
        Index(None, "project_id", "previous_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    alias_id: Mapped[int]
    checkpoint_id: Mapped[int]
    previous_id: Mapped[int | None]
    reason: Mapped[str | None]
    moved_by: Mapped[str]  # the token's name
    moved_at: Mapped[datetime]
    # Of a rollback, the move whose target it went back to, so that the next one goes further back; null: a move.
    rolled_back_to: Mapped[int | None]
