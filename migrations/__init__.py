"""Schema changes. `upgrade(database)` brings a database to the newest schema; nothing else creates tables."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from alembic.config import Config

    from registry.db import Database

FOLDER = Path(__file__).parent
HEAD = "0007"  # the revision this code was written for; a test holds it against versions/


def alembic_config(database: "Database") -> "Config":
    from alembic.config import Config  # 60 ms that a serving process does not need

    config = Config()
    config.set_main_option("script_location", str(FOLDER))
    config.set_main_option("file_template", "%%(year)d-%%(month).2d-%%(day).2d-%%(hour).2d%%(minute).2d_%%(slug)s")
    config.attributes["database"] = database
    return config


def upgrade(database: "Database", revision: str = "head") -> None:
    from alembic import command

    command.upgrade(alembic_config(database), revision)


def downgrade(database: "Database", revision: str) -> None:
    from alembic import command

    command.downgrade(alembic_config(database), revision)


def current_revision(database: "Database") -> str | None:
    """The revision a database is at; None where it has no schema yet. Reads one row, without Alembic."""
    from sqlalchemy import inspect, text

    with database.read() as session:
        if not inspect(session.connection()).has_table("alembic_version"):
            return None
        return session.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
