"""One of the four pieces that resuming needs, with the evidence for it. No row: nobody said anything."""

from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project
from registry.types import PieceName, Presence


class Piece(Base):
    __tablename__ = "piece"
    __table_args__ = (
        within_project("checkpoint_id", "checkpoint"),
        one_of("name", PieceName),
        one_of("presence", Presence),
        one_of("position_evidence", ("state", "counter")),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(primary_key=True)
    presence: Mapped[str]
    evidence: Mapped[str | None]  # what says so: file names, a manifest, the recorder
    position_evidence: Mapped[str | None]  # data_position only: a loader's state, or a counter of samples
    moment: Mapped[str | None]  # the save it belongs to; pieces of different moments are never one checkpoint
