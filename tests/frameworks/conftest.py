"""What these tests need and no more: they run where torch is, and where no database and no web framework is.

`make test-frameworks` cuts off the conftest above, and gives them an environment of their own.
"""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where torch is not, whoever asks for all tests is told why these do not run."""
    if find_spec("torch") is None:
        skip = pytest.mark.skip(reason="torch is not installed here: make test-frameworks")
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(skip)


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a folder of `make_fixtures` once, by the libraries that are installed."""
    from tests.frameworks import make_fixtures

    root = tmp_path_factory.mktemp("made")
    done: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in done:
            done[name] = make_fixtures.make(name, root)
        return done[name]

    return make
