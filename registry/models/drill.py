"""A rehearsed restore: what was tried of one checkpoint on one host, how long it took, and what came of it."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project
from registry.types import Tier

CHECKS = ("passed", "failed", "not_tried")
VERDICTS = ("passed", "failed")
STAGES = ("read", "verify", "convert", "load", "run")


class Drill(Base):
    __tablename__ = "drill"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "key"),
        within_project("run_id", "run"),
        within_project("checkpoint_id", "checkpoint"),
        within_project("replica_id", "replica"),
        within_project("layout_id", "layout"),
        Index(None, "project_id", "run_id", "id"),
        Index(None, "project_id", "checkpoint_id", "id"),
        Index(None, "project_id", "replica_id"),
        Index(None, "project_id", "layout_id"),
        Index(None, "project_id", "tier", "format", "id"),
        CheckConstraint(" AND ".join(f"{stage}_seconds >= 0" for stage in STAGES), name="seconds"),
        CheckConstraint("bytes_read >= 0 AND steps_run >= 0", name="counts"),
        CheckConstraint("ended_at >= started_at", name="times"),
        one_of("tier", Tier),
        one_of("verdict", VERDICTS),
        *(one_of(check, CHECKS) for check in ("read", "verify", "files", "run", "continuation", "cold_start")),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    run_id: Mapped[int]
    checkpoint_id: Mapped[int]
    replica_id: Mapped[int | None]  # null: nobody said which copy
    key: Mapped[str]  # the client's: the same key again is the same drill
    digest: Mapped[bytes]  # of everything that was said
    host: Mapped[str]
    # As they were at the drill, so that figures by tier and format stay what they were.
    tier: Mapped[str | None]
    format: Mapped[str | None]
    layout_id: Mapped[int | None]
    software: Mapped[str]  # canonical JSON: name to version
    started_at: Mapped[datetime]
    ended_at: Mapped[datetime]
    read_seconds: Mapped[float | None]
    verify_seconds: Mapped[float | None]
    convert_seconds: Mapped[float | None]
    load_seconds: Mapped[float | None]
    run_seconds: Mapped[float | None]
    bytes_read: Mapped[int | None]
    steps_run: Mapped[int]
    losses: Mapped[bytes | None]  # compressed JSON: what the drill's steps gave, and those of a cold start beside it
    # What each part showed. The last two are the service's own comparisons.
    read: Mapped[str]
    verify: Mapped[str]
    files: Mapped[str]
    run: Mapped[str]
    continuation: Mapped[str]
    cold_start: Mapped[str]
    verdict: Mapped[str]
    exact: Mapped[bool | None]  # null: unknown
    reason: Mapped[str]
    comparison: Mapped[str]  # what the comparisons found, in words
    created_by: Mapped[str]
    created_at: Mapped[datetime]
