"""How commands come to the database: its folder made, its driver there, its schema the newest."""

import contextlib
import os
from typing import TYPE_CHECKING

import migrations
from registry.config import BadSetting, Settings
from registry.errors import Invalid

if TYPE_CHECKING:
    from registry.db import Database


class UnknownRevision(Invalid):
    code = "unknown-revision"
    title = "The database cannot be brought to that schema"


def open_database(settings: Settings) -> "Database":
    """The database at the newest schema, with the admin token made at the first start."""
    from registry import tokens

    database = database_of(settings)
    _make_file(database)
    if migrations.current_revision(database) != migrations.HEAD:
        migrate_to(database, "head")
    with database.write() as session:
        tokens.ensure_admin_token(session, settings.admin_token_file)
    return database


def database_of(settings: Settings) -> "Database":
    """Raises BadSetting where its folder or its driver is missing."""
    from registry.db import Database

    try:
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise BadSetting(f"CAIRN_HOME is {str(settings.home)!r}, which is no folder to write in: {error}.") from None
    try:
        return Database(settings.database_url)
    except ModuleNotFoundError as error:
        extra = "install cairn-registry[postgres]"
        raise BadSetting(f"CAIRN_DATABASE_URL needs {error.name}, which is not installed: {extra}.") from None


def migrate_to(database: "Database", revision: str, *, down: bool = False) -> None:
    """Raises UnknownRevision, as where the database was made by a newer release than this one."""
    from alembic.util import CommandError

    _make_file(database)
    try:
        (migrations.downgrade if down else migrations.upgrade)(database, revision)
    except CommandError as error:
        newest = f"this release knows revisions up to {migrations.HEAD}"
        raise UnknownRevision(f"{str(error).rstrip('.')}; {newest}.") from None


def _make_file(database: "Database") -> None:
    """A new file of SQLite is its owner's alone; its log and index take its mode.

    Only a new one is opened here: to close a file that SQLite has open too takes away the locks of this process, and
    the next process that comes and goes would then delete the log that this one still writes to.
    """
    if database.is_sqlite:
        with contextlib.suppress(OSError):
            os.close(os.open(str(database.url.database), os.O_CREAT | os.O_EXCL | os.O_RDONLY | os.O_CLOEXEC, 0o600))
