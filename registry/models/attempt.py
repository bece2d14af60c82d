"""An attempt: one execution of a run between two starts.

`live_through_step` is derived (registry.attempts): the last step of this attempt that the newest attempt's path
still stands on; null means all of them, -1 none. A checkpoint beyond it is superseded.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

WAITING = "resumed_from_step IS NOT NULL AND resumed_from_checkpoint_id IS NULL"
WATCHED = "state = 'running' AND heartbeat_at IS NOT NULL"  # registry.incidents.watch looks at no other
STATES = ("running", "finished", "failed", "lost", "stalled", "stopped")


class Attempt(Base):
    __tablename__ = "attempt"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "run_id", "number"),
        UniqueConstraint("project_id", "run_id", "key"),
        within_project("run_id", "run"),
        within_project("resumed_from_checkpoint_id", "checkpoint", use_alter=True),
        within_project("config_id", "config"),
        within_project("environment_id", "environment"),
        within_project("layout_id", "layout"),
        Index(None, "project_id", "resumed_from_checkpoint_id"),
        Index(
            "ix_attempt_waiting",
            "project_id",
            sqlite_where=text(WAITING),
            postgresql_where=text(WAITING),
        ),
        Index(
            "ix_attempt_watched",
            "heartbeat_at",
            sqlite_where=text(WATCHED),
            postgresql_where=text(WATCHED),
        ),
        Index(None, "project_id", "config_id"),
        Index(None, "project_id", "environment_id"),
        Index(None, "project_id", "layout_id"),
        CheckConstraint("number >= 1", name="number"),
        CheckConstraint("resumed_from_step >= 0", name="resumed_from_step"),
        one_of("state", STATES),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    run_id: Mapped[int]
    number: Mapped[int]
    key: Mapped[str | None]  # the caller's name for it: the same key again is the same attempt
    state: Mapped[str]
    # What it loaded, as said by the caller. The checkpoint's own record may arrive later, or never.
    resumed_from_checkpoint_id: Mapped[int | None]
    resumed_from_run: Mapped[str | None]  # the name of another run; null means this one
    resumed_from_attempt: Mapped[int | None]
    resumed_from_step: Mapped[int | None]
    resumed_from_kind: Mapped[str | None]
    restart: Mapped[bool]
    live_through_step: Mapped[int | None]
    command: Mapped[str | None]
    reason: Mapped[str | None]
    changes: Mapped[str | None]
    config_id: Mapped[int | None]
    environment_id: Mapped[int | None]
    layout_id: Mapped[int | None]
    nodes: Mapped[str | None]  # JSON list of names
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
    exit_code: Mapped[int | None]
    heartbeat_at: Mapped[datetime | None]
    heartbeat_step: Mapped[int | None]
    created_at: Mapped[datetime]
