"""What an attempt says it restored of the checkpoint that it loaded: evidence, kept beside what came before."""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

RESTORED = ("restored", "fresh", "absent", "unknown")


class ResumeReceipt(Base):
    __tablename__ = "resume_receipt"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "attempt_id", "digest"),
        within_project("run_id", "run"),
        within_project("attempt_id", "attempt"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "run_id"),
        Index(None, "project_id", "checkpoint_id"),
        CheckConstraint("restore_seconds >= 0", name="restore_seconds"),
        CheckConstraint("loaded_step >= 0", name="loaded_step"),
        *(one_of(piece, RESTORED) for piece in ("weights", "optimizer", "data_position", "random_state")),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    run_id: Mapped[int]
    attempt_id: Mapped[int]
    digest: Mapped[bytes]  # of everything said: the same receipt again is one
    # What was loaded, as said. Its own record may arrive later, or never.
    checkpoint_id: Mapped[int | None]
    loaded_run: Mapped[str | None]  # the name of another run; null means this one
    loaded_attempt: Mapped[int | None]
    loaded_step: Mapped[int | None]
    loaded_kind: Mapped[str | None]
    weights: Mapped[str]
    optimizer: Mapped[str]
    data_position: Mapped[str]
    random_state: Mapped[str]
    restore_seconds: Mapped[float | None]
    note: Mapped[str | None]
    restored_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
