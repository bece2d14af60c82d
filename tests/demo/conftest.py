"""A database with the demonstration loaded, once per system: loading takes seconds, and no test here changes it."""

from collections.abc import Iterator

import pytest

from demo.load import load_demo
from registry.db import Database
from tests.databases import BACKENDS, fresh_database


@pytest.fixture(scope="session", params=BACKENDS)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    server = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with fresh_database(request.param, tmp_path_factory.mktemp("demo"), server) as database:
        assert load_demo(database) == 469
        yield database
