"""An incident: an event that cost training time, on an attempt as far as it is known which.

Of one attempt there is at most one open incident of each kind, whatever number of processes notice it at once; those
that a person reports are not counted among them.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

OPEN = "closed_at IS NULL"
OPEN_ONCE = "closed_at IS NULL AND kind <> 'reported'"
# How it showed: the job exited, its host fell silent, it runs without a step, its workers formed anew, or it was told.
KINDS = ("crashed", "lost", "stalled", "reformed", "reported")
ENDINGS = ("recovered", "closed")  # training went on; somebody closed it


class Incident(Base):
    __tablename__ = "incident"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "run_id", "key"),
        within_project("run_id", "run"),
        within_project("attempt_id", "attempt"),
        within_project("checkpoint_id", "checkpoint"),
        within_project("replica_id", "replica"),
        Index(
            "uq_incident_open",
            "project_id",
            "attempt_id",
            "kind",
            unique=True,
            sqlite_where=text(OPEN_ONCE),
            postgresql_where=text(OPEN_ONCE),
        ),
        Index("ix_incident_open", "project_id", "run_id", sqlite_where=text(OPEN), postgresql_where=text(OPEN)),
        Index(None, "project_id", "run_id", "occurred_at", "id"),
        Index(None, "project_id", "occurred_at", "id"),
        Index(None, "occurred_at", "id"),
        Index(None, "project_id", "attempt_id"),
        Index(None, "project_id", "checkpoint_id"),
        Index(None, "project_id", "replica_id"),
        CheckConstraint("steps_lost >= 0 AND last_step >= 0", name="steps"),
        CheckConstraint("(closed_at IS NULL) = (ending IS NULL)", name="closed"),
        one_of("kind", KINDS),
        one_of("ending", ENDINGS),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    run_id: Mapped[int]
    attempt_id: Mapped[int | None]
    key: Mapped[str | None]  # the caller's name for it: the same key again is the same incident
    kind: Mapped[str]
    cause: Mapped[str]  # of registry.incidents.causes, or a newer client's own word; 'unknown' until somebody knows
    cause_said_by: Mapped[str | None]  # a token's name; null: guessed from the log, or unknown
    evidence: Mapped[str | None]  # JSON list of the lines that the cause was read from
    occurred_at: Mapped[datetime]
    exit_code: Mapped[int | None]
    signal: Mapped[str | None]
    node: Mapped[str | None]
    hardware: Mapped[str | None]
    log_excerpt: Mapped[str | None]  # at most 64 KiB
    last_step: Mapped[int | None]  # the last step that the attempt is known to have made
    steps_lost: Mapped[int | None]  # since the last committed checkpoint; null: the last step is not known
    steps_lost_said: Mapped[bool]  # the caller's own number, which nothing computes anew
    checkpoint_id: Mapped[int | None]  # what the attempt had loaded, and which copy of it
    replica_id: Mapped[int | None]
    signature: Mapped[str | None]  # what two failures have in common that failed alike
    fruitless: Mapped[bool]  # it struck before the attempt had saved anything
    note: Mapped[str | None]
    opened_by: Mapped[str]  # a token's name, or 'cairn' for the service itself
    created_at: Mapped[datetime]
    closed_at: Mapped[datetime | None]
    ending: Mapped[str | None]
    recovered_at: Mapped[datetime | None]  # when training went on; the recovery time counts from occurred_at
