"""A printed login link: good once, for a short time."""

from datetime import datetime

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base


class LoginCode(Base):
    __tablename__ = "login_code"
    __table_args__ = (Index(None, "token_id"),)

    digest: Mapped[bytes] = mapped_column(primary_key=True)
    token_id: Mapped[int] = mapped_column(ForeignKey("token.id"))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
