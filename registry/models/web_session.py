"""A browser that is logged in: the hash of its cookie, and the token it stands for."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class WebSession(Base):
    __tablename__ = "web_session"
    __table_args__ = (Index(None, "token_id"),)

    digest: Mapped[bytes] = mapped_column(primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("token.id"))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
