"""A piece of durable work: asked for in the transaction of whoever wants it, done later by a worker.

A worker holds a job by its lease and the number of its claim; one that was killed loses both, and another goes on from
`position`. Of waiting jobs of one kind and key there is only ever one: asking again adds nothing.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of

STATES = ("waiting", "running", "done", "failed", "cancelled")
WAITING = "state = 'waiting'"
RUNNING = "state = 'running'"


class Job(Base):
    __tablename__ = "job"
    __table_args__ = (
        Index(
            "uq_job_waiting",
            "project_id",
            "kind",
            "key",
            unique=True,
            sqlite_where=text(WAITING),
            postgresql_where=text(WAITING),
        ),
        Index("ix_job_due", "not_before", "id", sqlite_where=text(WAITING), postgresql_where=text(WAITING)),
        Index("ix_job_running", "lease_until", sqlite_where=text(RUNNING), postgresql_where=text(RUNNING)),
        Index(None, "project_id", "id"),
        CheckConstraint("(worker IS NULL) = (lease_until IS NULL)", name="lease"),
        one_of("state", STATES),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    kind: Mapped[str]  # tracker.import, tracker.refresh, tracker.push ...
    key: Mapped[str]  # what it works on, such as a link's id
    resource: Mapped[
        str | None
    ]  # what it needs from outside, such as a host: where that is down, its jobs wait together
    arguments: Mapped[str]  # JSON
    state: Mapped[str]
    claims: Mapped[int]  # how often a worker took it; the number of the newest claim
    failures: Mapped[int]  # in a row, without progress in between
    not_before: Mapped[datetime]
    worker: Mapped[str | None]
    lease_until: Mapped[datetime | None]
    position: Mapped[str | None]  # JSON: where it goes on after a kill
    progress_done: Mapped[int]
    progress_total: Mapped[int | None]
    progress_text: Mapped[str | None]
    error_code: Mapped[str | None]
    error: Mapped[str | None]
    report: Mapped[str | None]  # JSON: what came of it
    asked_by: Mapped[str]
    created_at: Mapped[datetime]
    started_at: Mapped[datetime | None]
    ended_at: Mapped[datetime | None]
