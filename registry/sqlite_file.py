"""Whether the file of a SQLite database is still where it was opened: an open file can be written without its name."""

import os

from sqlalchemy.exc import OperationalError


class FileGone(OperationalError):
    """The file that a connection to SQLite has open is at its path no more: what is written there nobody finds."""

    def __init__(self, path: str) -> None:
        self.message = (
            f"The database file {path} was moved, removed or replaced under the running service. Nothing was changed. "
            "Put it back, or restart the service."
        )
        super().__init__(None, None, FileNotFoundError(path))


class OpenFile:
    """Which file is open, from the first connection on: every later one, and each transaction, must find it there."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._opened: tuple[int, int] | None = None  # device and number; None: none yet, or none at all (in memory)

    def note(self) -> None:
        self._opened = self._opened or self._there()

    def forget(self) -> None:
        self._opened = None

    def check(self) -> None:
        """Raises FileGone."""
        if self._opened is not None and self._opened != self._there():
            raise FileGone(self.path)

    def _there(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino
