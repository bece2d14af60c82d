"""That a checkpoint, or one copy of it, is suspect: attempts that loaded it failed alike before they saved anything.

Written by registry.incidents.suspicion; whoever chooses a checkpoint asks its `suspects_of`.
"""

from datetime import datetime

from sqlalchemy import Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class CheckpointSuspicion(Base):
    __tablename__ = "checkpoint_suspicion"
    __table_args__ = (
        UniqueConstraint("project_id", "checkpoint_id", "signature"),
        within_project("checkpoint_id", "checkpoint"),
        within_project("replica_id", "replica"),
        Index(None, "project_id", "replica_id"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    checkpoint_id: Mapped[int]
    replica_id: Mapped[int | None]  # the one copy that was loaded each time; null: the checkpoint as a whole
    signature: Mapped[str]  # '' where a person said so
    reason: Mapped[str]
    incidents: Mapped[int]
    since: Mapped[datetime]
    lifted_at: Mapped[datetime | None]
    lifted_by: Mapped[str | None]  # a token's name, or 'cairn' where other checkpoints failed alike
