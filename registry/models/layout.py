"""How state was split across ranks when it was saved. A null degree is unknown, never one."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class Layout(Base):
    __tablename__ = "layout"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "digest"),
        CheckConstraint("world_size >= 1 AND tp >= 1 AND pp >= 1 AND dp >= 1 AND cp >= 1 AND ep >= 1", name="degrees"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    digest: Mapped[bytes]
    world_size: Mapped[int | None]
    tp: Mapped[int | None]
    pp: Mapped[int | None]
    dp: Mapped[int | None]
    cp: Mapped[int | None]
    ep: Mapped[int | None]
    sharding: Mapped[str | None]  # none, zero-1 .. zero-3, fsdp, fsdp2, hsdp, or the format's own word
    extra: Mapped[str | None]  # canonical JSON of what else was said
    created_at: Mapped[datetime]
