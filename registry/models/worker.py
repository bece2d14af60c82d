"""A process that does jobs, as it last said of itself: so that a page can tell when none is there."""

from datetime import datetime

from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class Worker(Base):
    __tablename__ = "worker"

    name: Mapped[str] = mapped_column(primary_key=True)  # host, process id and a random part
    started_at: Mapped[datetime]
    seen_at: Mapped[datetime]
