"""The items that a benchmark was evaluated on: one digest an item, sorted; shared by every checkpoint that saw them."""

from sqlalchemy import CheckConstraint, ForeignKey, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class ItemSet(Base):
    __tablename__ = "item_set"
    __table_args__ = (
        UniqueConstraint("project_id", "id"),
        UniqueConstraint("project_id", "digest"),
        CheckConstraint("count > 0", name="count"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"))
    digest: Mapped[bytes]  # 16 bytes, of the sorted keys
    count: Mapped[int]
    body: Mapped[bytes]  # compressed: 8 bytes an item, of its document's and its prompt's hash
