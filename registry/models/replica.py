"""One complete copy of a checkpoint in one place, or one spread over hosts in parts."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project
from registry.types import Tier

STATES = ("present", "partial", "removed", "removed_elsewhere")
VERIFICATIONS = ("unverified", "verified", "corrupt")


class Replica(Base):
    __tablename__ = "replica"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "checkpoint_id", "uri"),
        within_project("checkpoint_id", "checkpoint"),
        Index(None, "manifest_id"),
        CheckConstraint("bytes >= 0 AND file_count >= 0", name="sizes"),
        CheckConstraint("(digest_algorithm IS NULL) = (digest IS NULL)", name="digest"),
        one_of("tier", Tier),
        one_of("state", STATES),
        one_of("verification", VERIFICATIONS),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    checkpoint_id: Mapped[int]
    uri: Mapped[str]
    tier: Mapped[str]
    host: Mapped[str | None]
    bytes: Mapped[int | None]
    file_count: Mapped[int | None]
    digest_algorithm: Mapped[str | None]
    digest: Mapped[str | None]
    manifest_id: Mapped[int | None] = mapped_column(ForeignKey("manifest.id"))
    state: Mapped[str]
    verification: Mapped[str]
    verified_at: Mapped[datetime | None]
    managed: Mapped[bool]  # below a configured root; anything else is never read, copied or deleted
    recorded_at: Mapped[datetime]
