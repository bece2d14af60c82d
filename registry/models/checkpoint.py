"""A checkpoint: the saved state of a run at a step. Its identity is (run, attempt, step, kind)."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, number_or_special, one_of, within_project
from registry.types import CheckpointState, Kind


class Checkpoint(Base):
    __tablename__ = "checkpoint"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "run_id", "attempt_number", "step", "kind"),
        within_project("run_id", "run"),
        within_project("attempt_id", "attempt"),
        within_project("config_id", "config"),
        within_project("data_version_id", "data_version"),
        within_project("code_version_id", "code_version"),
        within_project("environment_id", "environment"),
        within_project("layout_id", "layout"),
        Index(None, "project_id", "saved_at", "id"),
        Index(None, "saved_at", "id"),
        Index(None, "project_id", "attempt_id", "step"),
        Index(None, "project_id", "config_id"),
        Index(None, "project_id", "data_version_id"),
        Index(None, "project_id", "code_version_id"),
        Index(None, "project_id", "environment_id"),
        Index(None, "project_id", "layout_id"),
        CheckConstraint("step >= 0", name="step"),
        CheckConstraint("tokens_seen >= 0", name="tokens_seen"),
        CheckConstraint("save_seconds >= 0 AND stall_seconds >= 0", name="seconds"),
        CheckConstraint("(committed_at IS NULL) = (state = 'pending')", name="committed_at"),
        *number_or_special("loss", "loss_special"),
        *number_or_special("lr", "lr_special"),
        one_of("kind", Kind),
        one_of("state", CheckpointState),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    run_id: Mapped[int]
    attempt_id: Mapped[int]
    attempt_number: Mapped[int]  # the attempt's own, which never changes: the first part of the order within a run
    step: Mapped[int]
    kind: Mapped[str]
    state: Mapped[str]
    saved_at: Mapped[datetime]
    saved_at_assumed: Mapped[bool]  # nobody said when: the time of arrival stands in
    tokens_seen: Mapped[int | None]
    epoch: Mapped[float | None]
    loss: Mapped[float | None]
    loss_special: Mapped[str | None]
    lr: Mapped[float | None]
    lr_special: Mapped[str | None]
    config_id: Mapped[int | None]
    data_version_id: Mapped[int | None]
    code_version_id: Mapped[int | None]
    environment_id: Mapped[int | None]
    layout_id: Mapped[int | None]
    data_cursor: Mapped[str | None]  # canonical JSON, at most 64 KiB
    format: Mapped[str | None]
    format_version: Mapped[str | None]
    save_seconds: Mapped[float | None]
    stall_seconds: Mapped[float | None]
    milestone: Mapped[bool]
    notes: Mapped[str | None]
    # A digest per field (registry.checkpoints.registration): of the first registration, and of what committed it later.
    registration: Mapped[bytes]
    commit_registration: Mapped[bytes | None]
    created_at: Mapped[datetime]
    committed_at: Mapped[datetime | None]
