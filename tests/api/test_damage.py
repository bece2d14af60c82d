"""A damaged file of SQLite is named as such, with the way out: by the API and by every command."""

import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from api.damage import damage_of
from api.opening import open_database
from api.problems import DatabaseAway, status_of, translate
from registry.config import Settings
from registry.db import Database
from tests.test_server import fresh_home


def damaged(file: Path) -> Path:
    """A registry whose first pages were overwritten."""
    open_database(Settings(file.parent, f"sqlite:///{file}")).dispose()
    with sqlite3.connect(file) as plain:
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    plain.close()
    content = file.read_bytes()
    file.write_bytes(content[:200] + b"\xa5" * 8000 + content[8200:])
    return file


def test_a_damaged_file_answers_503_with_what_to_do(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{damaged(tmp_path / 'cairn.db')}")
    with pytest.raises(DBAPIError) as caught, database.read() as session:
        session.execute(text("SELECT count(*) FROM checkpoints"))
    database.dispose()
    known = translate(caught.value)
    assert isinstance(known, DatabaseAway)
    assert status_of(known) == 503
    assert "database disk image is malformed" in known.message
    assert "cairn-server doctor" in known.message


def test_another_error_of_the_database_is_no_damage(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'cairn.db'}")
    with pytest.raises(DBAPIError) as caught, database.write() as session:
        session.execute(text("SELECT * FROM nothing"))
    database.dispose()
    assert damage_of(caught.value) == ""
    assert damage_of(ValueError("file is not a database")) == ""


@pytest.mark.parametrize("content", ["pages", "text"])
def test_every_command_says_it_in_one_line(tmp_path: Path, content: str) -> None:
    home = fresh_home(tmp_path)
    home.folder.mkdir()
    file = home.folder / "cairn.db"
    if content == "pages":
        damaged(file)
    else:
        file.write_text("this is no database\n" * 100)
    for command in ("serve",) if content == "pages" else ("serve", "worker", "migrate", "token list"):
        done = home.run(*command.split())
        assert done.returncode == 1, command
        assert "Traceback" not in done.stderr, command
        (line,) = done.stderr.strip().splitlines()
        assert line.startswith("The database cannot be read: "), command
        assert "`cairn-server doctor`" in line
        assert "`cairn-server restore FILE --replace`" in line
