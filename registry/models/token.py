"""A token: only its hash is kept. Without rows in token_project it holds for every project."""

from datetime import datetime

from sqlalchemy import UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from registry.db import Base, one_of
from registry.types import Scope


class Token(Base):
    __tablename__ = "token"
    __table_args__ = (UniqueConstraint("digest"), one_of("scope", Scope))

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    digest: Mapped[bytes]  # SHA-256; the token itself has 256 random bits, so it needs no slow hash
    scope: Mapped[str]  # each includes the ones below it
    bound: Mapped[bool]  # only for the projects of token_project
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
