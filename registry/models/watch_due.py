"""That a watch is to be looked at again, written in the transaction that gave it something to look at.

Rows are only added and taken away, never changed: those who record scores at the same time never wait for each other.
"""

from sqlalchemy import Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class WatchDue(Base):
    __tablename__ = "watch_due"
    __table_args__ = (within_project("watch_id", "watch"), Index(None, "project_id", "watch_id"))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]
    watch_id: Mapped[int]
