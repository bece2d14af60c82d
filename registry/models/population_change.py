"""What changed last about whom percentiles are among: a checkpoint, an attempt or a benchmark, each with one row.

`position` grows with every change, so a process that keeps columns of scores reads only what is new since it looked
(registry.changes). There is one row a subject, however often it changes, and no foreign key: a change says that
something is to be read again, never what it is.
"""

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class PopulationChange(Base):
    __tablename__ = "population_change"
    __table_args__ = (Index(None, "position"), {"sqlite_with_rowid": False})

    project_id: Mapped[int] = mapped_column(ForeignKey("project.id"), primary_key=True, autoincrement=False)
    subject_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    position: Mapped[int]
