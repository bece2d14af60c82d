"""How things stand with a link: when it was last read, what went wrong, what the run is there."""

from datetime import datetime

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

STATES = (
    *("new", "ok", "unreachable", "refused", "not-found", "deleted", "not-allowed", "untrusted-certificate"),
    *("redirected", "not-a-tracker", "failed"),
)
SCHEDULED = "next_check_at IS NOT NULL"


class TrackerState(Base):
    __tablename__ = "tracker_state"
    __table_args__ = (
        within_project("link_id", "tracker_link", ondelete="CASCADE"),
        Index("ix_tracker_state_due", "next_check_at", sqlite_where=text(SCHEDULED), postgresql_where=text(SCHEDULED)),
        one_of("state", STATES),
        one_of("push_state", ("off", "waiting", "ok", "failed")),
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[str]
    error: Mapped[str | None]
    checked_at: Mapped[datetime | None]  # the last answer, good or bad
    synced_at: Mapped[datetime | None]  # the last good one
    next_check_at: Mapped[datetime | None]  # null: the run has ended there, so it is read on demand only
    external_state: Mapped[str | None]
    external_name: Mapped[str | None]
    version: Mapped[str | None]  # the tracker's text that changes with the run
    curves: Mapped[str | None]  # JSON: by curve, the text that changes with it
    push_state: Mapped[str]
    push_error: Mapped[str | None]
    pushed_at: Mapped[datetime | None]
    pushed_run: Mapped[str | None]  # JSON: what the run there was told
