"""What a tracker says of one field of a run. `applied`: the registry's own value came from here.

A field whose value here is another than the one applied was set by somebody else, and is left alone.
"""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class TrackerField(Base):
    __tablename__ = "tracker_field"
    __table_args__ = (
        within_project("link_id", "tracker_link", ondelete="CASCADE"),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    link_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    field: Mapped[str] = mapped_column(primary_key=True)  # owner, started_at, state, config, tags.<name> ...
    value: Mapped[str]  # JSON; of a large value its digest
    applied: Mapped[bool]
    changed_at: Mapped[datetime]  # when this value was first seen there
