"""A file of SQLite that cannot be read as a database, and the way out of it."""

import sqlite3
from typing import Final

# By their beginning: SQLite adds what was damaged, as in SQLITE_CORRUPT_INDEX.
_NAMES: Final = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
WAY_OUT: Final = (
    "`cairn-server doctor` says more, and `cairn-server restore FILE --replace` puts a backup in its place; "
    "what is there now is put aside, not deleted"
)


def damage_of(error: BaseException) -> str:
    """What SQLite says of a file that is damaged or no database; '' where the error is another one."""
    origin = getattr(error, "orig", None) or error
    if not isinstance(origin, sqlite3.DatabaseError):
        return ""
    name = getattr(origin, "sqlite_errorname", None) or ""
    return str(origin).strip() if name.startswith(_NAMES) else ""
