"""That a host of a launch can read what the others agreed on."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, within_project


class ResumeAgreementHost(Base):
    __tablename__ = "resume_agreement_host"
    __table_args__ = (within_project("agreement_id", "resume_agreement"), {"sqlite_with_rowid": False})

    project_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    agreement_id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    host: Mapped[str] = mapped_column(primary_key=True)
    round: Mapped[int]  # of an earlier round than the agreement's: no longer ready
    ready_at: Mapped[datetime]
