"""A real MLflow server for all tests (one that kills it starts it again), and a registry with a worker for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from registry.db import Database
from tests.databases import fresh_database
from tests.trackers.registries import Registry
from tests.trackers.servers import HOME, MlflowServer, running_mlflow


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MlflowServer]:
    if not (HOME / "mlflow").exists():
        pytest.skip("no MLflow server is installed; `make test-trackers` installs one")
    with running_mlflow(tmp_path_factory.mktemp("mlflow")) as server:
        yield server


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[Database]:
    with fresh_database("sqlite", tmp_path) as database:
        yield database


@pytest.fixture
def registry(sqlite: Database, tmp_path: Path) -> Registry:
    return Registry(sqlite, tmp_path)
