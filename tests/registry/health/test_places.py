"""Folders and files that settings name: there, for the right people, with room."""

import shutil
import stat
from collections import namedtuple
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from registry.config import Settings
from registry.db import Database, now
from registry.health import database as of_database
from registry.health.database import CLOCK_SKEW, look_at_database
from registry.health.home import NONE_LEFT_BYTES, SCARCE_BYTES, look_at_home, look_at_token
from registry.health.outside import look_outside
from registry.health.shapes import Found
from registry.tokens import issue_token
from registry.types import Scope

Usage = namedtuple("Usage", "total used free")


def settings(home: Path, **known: object) -> Settings:
    return Settings(home, "sqlite:///none.db", **known)  # type: ignore[arg-type]


def outside(home: Path, credentials: str | None = None, **known: object) -> dict[str, Found]:
    return {each.subject: each for each in look_outside(settings(home, **known), credentials)}


@pytest.mark.parametrize(
    ("free", "health"), [(SCARCE_BYTES, "ok"), (SCARCE_BYTES - 1, "warning"), (NONE_LEFT_BYTES - 1, "fault")]
)
def test_a_disk_that_fills_is_said_before_it_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, health: str
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: Usage(2**40, 2**40 - free, free))
    assert {each.subject: each.health for each in look_at_home(settings(tmp_path))}["space"] == health


def test_a_home_in_which_others_may_write_is_a_warning(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    home = next(iter(look_at_home(settings(tmp_path))))
    assert (home.health, home.advice) == ("warning", f"chmod 700 {tmp_path}")


def test_a_token_of_another_database_is_told_from_one_of_this(session: Session, tmp_path: Path) -> None:
    file = tmp_path / "admin-token"
    assert look_at_token(session, file).health == "warning"
    file.write_text("cairn_of-another-database\n")
    file.chmod(0o600)
    assert "no token of this database" in look_at_token(session, file).said
    file.write_text(issue_token(session, "admin", Scope.ADMIN, actor="test"))
    assert look_at_token(session, file).health == "ok"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_clock_that_differs_from_the_database_is_a_warning(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    if database.is_sqlite:
        pytest.skip("SQLite has no clock of its own")
    assert {each.subject: each.health for each in look_at_database(database, whole=False)}["clock"] == "ok"
    monkeypatch.setattr(of_database, "now", lambda: now() - 2 * CLOCK_SKEW - timedelta(seconds=1))
    assert {each.subject: each.health for each in look_at_database(database, whole=False)}["clock"] == "warning"


def test_a_storage_root_that_is_not_mounted_is_a_fault(tmp_path: Path) -> None:
    assert outside(tmp_path, storage_roots=(str(tmp_path),))["storage root"].health == "ok"
    assert outside(tmp_path, storage_roots=(str(tmp_path / "gone"),))["storage root"].health == "fault"
    assert outside(tmp_path, storage_roots=("s3://bucket/runs",))["storage root"].health == "ok"


def test_mirrors_are_counted_and_none_is_a_warning(tmp_path: Path) -> None:
    assert outside(tmp_path, git_mirrors=tmp_path / "gone")["code mirrors"].health == "fault"
    assert outside(tmp_path, git_mirrors=tmp_path)["code mirrors"].health == "warning"
    for name in ("a.git", "group/b.git"):
        (tmp_path / "github.com" / name / "objects").mkdir(parents=True)
        (tmp_path / "github.com" / name / "HEAD").write_text("ref: refs/heads/main\n")
    assert outside(tmp_path, git_mirrors=tmp_path)["code mirrors"].said == f"2 in {tmp_path}"


def test_credentials_name_their_hosts_and_never_their_secrets(tmp_path: Path) -> None:
    file = tmp_path / "credentials.toml"
    assert outside(tmp_path, str(file))["tracker credentials"].health == "fault"
    file.write_text('["mlflow.example.org"]\ntoken = "hunter2"\n')
    file.chmod(0o644)
    assert outside(tmp_path, str(file))["tracker credentials"].health == "fault"
    file.chmod(0o600)
    good = outside(tmp_path, str(file))["tracker credentials"]
    assert (good.health, good.said) == ("ok", f"{file}, for mlflow.example.org")
    assert "hunter2" not in repr(good)


def test_nothing_outside_is_looked_at_where_nothing_is_named(tmp_path: Path) -> None:
    assert outside(tmp_path) == {}
