"""Fixtures that every test may use.

`database` runs a test on both systems, inside a transaction that is taken back; `session` is a session in it.
`committed_database` is a database of the test's own, for what needs real commits, several connections or threads.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from sqlalchemy.orm import Session

from registry.db import Database
from tests.databases import BACKENDS, fresh_database, postgresql_server, rolled_back

os.environ.setdefault("XDG_RUNTIME_DIR", "/tmp")
for name in ("http_proxy", "https_proxy", "all_proxy"):  # whatever a test calls is on this machine
    os.environ.pop(name, None)
    os.environ.pop(name.upper(), None)

# The same examples each time, and none too slow: whether the suite passes says something of the code and not of chance.
# To look for new ones: HYPOTHESIS_PROFILE=default, or --hypothesis-seed=1.
hypothesis.settings.register_profile(
    "cairn",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],  # of a busy machine
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "cairn"))
if hypothesis.settings().derandomize:
    # It also tries constants of all our modules that are loaded by then: which those are, the tests before say.
    assert callable(providers._get_local_constants)
    providers._get_local_constants = lambda: providers._local_constants


@pytest.fixture(scope="session")
def postgresql_url() -> Iterator[str]:
    with postgresql_server(flushes=False) as url:
        yield url


@pytest.fixture(scope="session", params=BACKENDS)
def worker_database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    server = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with fresh_database(request.param, tmp_path_factory.mktemp("db"), server) as database:
        yield database


@pytest.fixture
def database(worker_database: Database) -> Iterator[Database]:
    with rolled_back(worker_database) as database:
        yield database


@pytest.fixture
def session(database: Database) -> Iterator[Session]:
    with database.write() as session:
        yield session


@pytest.fixture(params=BACKENDS)
def committed_database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    server = request.getfixturevalue("postgresql_url") if request.param == "postgresql" else None
    with fresh_database(request.param, tmp_path, server) as database:
        yield database
