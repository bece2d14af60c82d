"""A caller is remembered for a moment: long enough to spare look-ups, too short for a revoked token to matter."""

import time
from pathlib import Path

import pytest
from sqlalchemy import event

from api.callers import MOMENT, MOST, RecentCallers
from registry.db import Database
from registry.tokens import Caller, list_tokens, revoke_token
from registry.types import Scope
from tests.api.conftest import client_of

SOMEBODY = Caller(1, "somebody", Scope.READ, None)


def test_a_revoked_token_is_refused_after_a_moment(database: Database, tmp_path: Path) -> None:
    with client_of(database, tmp_path) as client:
        assert client.get("/api/v1/runs").status_code == 200
        with database.write() as session:
            for token in list_tokens(session):
                revoke_token(session, token.id, actor="test")
        time.sleep(MOMENT)
        assert client.get("/api/v1/runs").status_code == 401


def test_another_token_is_never_taken_for_one_that_is_remembered(database: Database, tmp_path: Path) -> None:
    with client_of(database, tmp_path) as client:
        assert client.get("/api/v1/runs").status_code == 200
        assert client.get("/api/v1/runs", headers={"Authorization": "Bearer cairn_other"}).status_code == 401
        assert client.get("/api/v1/runs", headers={"Authorization": ""}).status_code == 401


def test_a_steady_caller_is_looked_up_seldom(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr("api.callers.MOMENT", 60.0)
    with client_of(database, tmp_path) as client:
        listen = lambda *call: seen.append(call[2])  # noqa: E731
        event.listen(database.writer, "before_cursor_execute", listen)
        for _ in range(5):
            assert client.get("/api/v1/runs").status_code == 200
        event.remove(database.writer, "before_cursor_execute", listen)
    assert sum("FROM token" in statement for statement in seen) == 1


def test_memory_is_bounded() -> None:
    recent = RecentCallers()
    for number in range(MOST + 10):
        recent.put(f"token {number}", SOMEBODY)
    assert recent.get(f"token {MOST + 9}") == SOMEBODY
    assert recent.get("token 0") is None
