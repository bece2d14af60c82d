"""The real application in process, with a browser's cookie instead of a token."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from registry.config import Settings
from registry.db import Database
from registry.tokens import issue_login_code, issue_token
from registry.types import Scope
from tests.application import application

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def browser_of(database: Database, home: Path) -> TestClient:
    """A browser that nobody has signed in yet."""
    return TestClient(application(database, Settings(home, str(database.url))), headers=BROWSER)


def sign_in(client: TestClient, database: Database, scope: Scope = Scope.ADMIN, **bound: list[int]) -> None:
    """Follow a fresh login link of a token of a scope."""
    with database.write() as session:
        token = issue_token(session, "maria", scope, actor="test", **bound)
        code = issue_login_code(session, token)
    answer = client.get("/login", params={"code": code}, follow_redirects=False)
    assert answer.status_code == 303


@pytest.fixture
def stranger(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with browser_of(database, tmp_path) as client:
        yield client


@pytest.fixture
def browser(stranger: TestClient, database: Database) -> TestClient:
    sign_in(stranger, database)
    return stranger
