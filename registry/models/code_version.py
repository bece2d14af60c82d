"""A state of the training code: a commit, and whether the tree differed from it."""

from datetime import datetime

from sqlalchemy import ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class CodeVersion(Base):
    __tablename__ = "code_version"
    __table_args__ = (UniqueConstraint("project_id", "id"), UniqueConstraint("project_id", "digest"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    digest: Mapped[bytes]
    commit: Mapped[str | None]
    dirty: Mapped[bool | None]  # null: nobody said
    diff_digest: Mapped[str | None]
    remote: Mapped[str | None]
    created_at: Mapped[datetime]
