"""A standing watch: each score, or each stretch of the loss, that arrives for a run or an alias is tested."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

KINDS = ("score", "loss")
STANDING = "ended_at IS NULL"


class Watch(Base):
    __tablename__ = "watch"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "target"),
        within_project("run_id", "run"),
        within_project("alias_id", "alias"),
        Index(None, "project_id", "run_id"),
        Index(None, "project_id", "alias_id"),
        # What every batch of scores and every stretch of a curve asks: most projects have none.
        Index("ix_watch_standing", "project_id", "kind", sqlite_where=text(STANDING), postgresql_where=text(STANDING)),
        CheckConstraint("(run_id IS NULL) <> (alias_id IS NULL)", name="subject"),
        CheckConstraint("kind = 'score' OR (run_id IS NOT NULL AND benchmark IS NULL)", name="loss"),
        CheckConstraint("benchmark IS NULL OR capability IS NULL", name="watched"),
        one_of("kind", KINDS),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    run_id: Mapped[int | None]
    alias_id: Mapped[int | None]
    kind: Mapped[str]
    benchmark: Mapped[str | None]
    capability: Mapped[str | None]
    target: Mapped[str]  # all of the above as one text: the same watch again is this one
    note: Mapped[str | None]
    created_at: Mapped[datetime]
    created_by: Mapped[str]  # the token's name
    ended_at: Mapped[datetime | None]
