"""What became of a suspect that somebody tested by reverting it: confirmed or cleared, on which branch."""

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of, within_project

VERDICTS = ("confirmed", "cleared")


class SuspectTest(Base):
    __tablename__ = "suspect_test"
    __table_args__ = (
        ForeignKeyConstraint(["baseline_project_id", "baseline_id"], ["checkpoint.project_id", "checkpoint.id"]),
        within_project("candidate_id", "checkpoint"),
        within_project("branch_id", "checkpoint"),
        Index(None, "baseline_project_id", "baseline_id"),
        Index(None, "project_id", "candidate_id"),
        Index(None, "project_id", "branch_id"),
        one_of("verdict", VERDICTS),
        CheckConstraint("verdict <> 'confirmed' OR branch_id IS NOT NULL", name="branch"),
    )

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    project_id: Mapped[int]  # of the candidate and the branch
    baseline_project_id: Mapped[int]
    baseline_id: Mapped[int]
    candidate_id: Mapped[int]
    change: Mapped[str]  # the key under which compare names it
    verdict: Mapped[str]
    branch_id: Mapped[int | None]  # a checkpoint of the short training with the change reverted
    note: Mapped[str | None]
    created_by: Mapped[str]
    created_at: Mapped[datetime]
