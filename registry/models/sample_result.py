"""What a checkpoint got on each item of a benchmark: the values behind one score, in the order of the item set."""

from sqlalchemy import ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

ENCODINGS = ("bits", "float64")


class SampleResult(Base):
    __tablename__ = "sample_result"
    __table_args__ = (
        ForeignKeyConstraint(
            ["project_id", "checkpoint_id", "series_id", "digest"],
            ["score.project_id", "score.checkpoint_id", "score.series_id", "score.digest"],
        ),
        within_project("item_set_id", "item_set"),
        Index(None, "project_id", "item_set_id"),
        one_of("encoding", ENCODINGS),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    series_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    digest: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)  # the score's own
    item_set_id: Mapped[int]
    encoding: Mapped[str]  # bits where every value is 0 or 1
    body: Mapped[bytes]
    arrival: Mapped[int]
