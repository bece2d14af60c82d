"""How Alembic reaches the database: online only, with our metadata, and never waiting long for a lock."""

from typing import Any, Literal

from alembic import context
from sqlalchemy import Connection, text

import registry.models  # noqa: F401  completes the metadata
from registry.db import Base, Database, UtcTime


def render(kind: str, item: Any, autogen: Any) -> str | Literal[False]:
    """Our own column type by its name; everything else as Alembic does."""
    if kind == "type" and isinstance(item, UtcTime):
        autogen.imports.add("from registry.db import UtcTime")
        return "UtcTime()"
    return False


def run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        render_item=render,
        render_as_batch=connection.dialect.name == "sqlite",
        transaction_per_migration=True,
    )
    with context.begin_transaction():
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL lock_timeout = '5s'"))
            # Two processes that start at once: the second waits here, then finds nothing left to do.
            connection.execute(text("SELECT pg_advisory_xact_lock(4701826)"))
        context.run_migrations()


database: Database = context.config.attributes["database"]
with database.writer.connect() as connection:
    run(connection)
    connection.commit()
