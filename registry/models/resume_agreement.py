"""What the hosts of one launch load: the first to ask proposes, and all go on once every host can read it.

Which hosts can read it is in `resume_agreement_host`, of the current round.
"""

from datetime import datetime

from sqlalchemy import CheckConstraint, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class ResumeAgreement(Base):
    __tablename__ = "resume_agreement"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "run_id", "key"),
        within_project("run_id", "run"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "project_id", "checkpoint_id"),
        CheckConstraint("hosts >= 1", name="hosts"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    run_id: Mapped[int]
    key: Mapped[str]  # the caller's name for the launch
    hosts: Mapped[int]  # that must be able to read it before any goes on
    checkpoint_id: Mapped[int]
    round: Mapped[int]  # grows whenever another checkpoint is proposed
    refused: Mapped[str]  # JSON list of the ids of checkpoints that some host could not read
    sealed_at: Mapped[datetime | None]  # all hosts are ready: it never changes again
    failed: Mapped[str | None]  # why nothing is left to agree on
    created_at: Mapped[datetime]
