"""The real application in process, over the database of the test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.config import Settings
from registry.db import Database
from registry.tokens import issue_token
from registry.types import Scope
from tests.application import application


def client_of(database: Database, home: Path, scope: Scope = Scope.ADMIN, **settings: Any) -> TestClient:
    """A client with a token of a scope."""
    with database.write() as session:
        token = issue_token(session, f"test-{scope}", scope, actor="test")
    app = application(database, Settings(home, str(database.url), **settings))
    return TestClient(app, headers={"Authorization": f"Bearer {token}"}, raise_server_exceptions=False)


@pytest.fixture
def client(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(database, tmp_path) as client:
        yield client
