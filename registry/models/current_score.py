"""The score that counts now for (checkpoint, metric): the newest evaluation, then the last to arrive.

Derived: each row repeats one of `score`, in whose transaction it is written and whose foreign keys speak for it. A
checkpoint without a result of its own repeats that of a lossless copy, which is named (registry.evals.copies).
"""

from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, number_or_special

LENT = "via_checkpoint_id IS NOT NULL"


class CurrentScore(Base):
    __tablename__ = "current_score"
    __table_args__ = (
        Index(None, "project_id", "score_metric_id", "value", "checkpoint_id"),
        # Few rows are lent: found by themselves, so that reading a column of values never leaves the index above.
        Index(
            None, "project_id", "score_metric_id", "checkpoint_id", sqlite_where=text(LENT), postgresql_where=text(LENT)
        ),
        *number_or_special(),
        {"sqlite_with_rowid": False},
    )

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    checkpoint_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    score_metric_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    series_id: Mapped[int]
    value: Mapped[float | None]
    special: Mapped[str | None]
    stderr: Mapped[float | None]
    evaluated_micros: Mapped[int]  # since 1970; 0 where nobody said
    arrival: Mapped[int]
    via_checkpoint_id: Mapped[int | None]  # the lossless copy that was evaluated in this one's place
