"""For commands whose answers are scripted."""

import pytest

from tests.client.conftest import FaultServer


@pytest.fixture
def scripted(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The service is the fault server."""
    monkeypatch.setenv("CAIRN_URL", faults.url)
    monkeypatch.setenv("CAIRN_TOKEN", "secret-token")
