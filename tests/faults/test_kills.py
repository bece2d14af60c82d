"""The same as `tests/client/recorder/test_kill.py`, two hundred times: `make test-faults`."""

from pathlib import Path

import pytest
from cairn import Client

from tests.client.conftest import _no_settings_of_the_person_who_runs_the_tests, live, project, service
from tests.client.recorder.conftest import spool
from tests.client.recorder.killing import kill_often

__all__ = ["_no_settings_of_the_person_who_runs_the_tests", "live", "project", "service", "spool"]


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(4))
def test_two_hundred_kills_lose_nothing_and_double_nothing(
    live: Client,
    project: str,
    service: tuple[str, Path],
    spool: Path,
    seed: int,
) -> None:
    kill_often(live, project, service, spool, kills=50, seed=seed)
