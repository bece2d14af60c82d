"""How a checkpoint came from another one."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of
from registry.types import Relation


class LineageEdge(Base):
    __tablename__ = "lineage_edge"
    __table_args__ = (
        ForeignKeyConstraint(["project_id", "child_id"], ["checkpoint.project_id", "checkpoint.id"]),
        ForeignKeyConstraint(["parent_project_id", "parent_id"], ["checkpoint.project_id", "checkpoint.id"]),
        Index(None, "parent_project_id", "parent_id"),
        CheckConstraint("child_id <> parent_id", name="not_its_own_parent"),
        one_of("relation", Relation),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    child_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    parent_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    relation: Mapped[str] = mapped_column(primary_key=True)
    parent_project_id: Mapped[int]
    created_at: Mapped[datetime]
