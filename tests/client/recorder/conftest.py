"""A spool of the test's own, and the background ended when the test ends."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from cairn.capture import scheduler

from tests.client.background import end_background, wait_for_the_disk


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in (*scheduler.RANKS, *scheduler.WORLD_SIZES, "CAIRN_RUN", "CAIRN_ATTEMPT_KEY", "CAIRN_RESUMED_FROM"):
        monkeypatch.delenv(name, raising=False)
    wait_for_the_disk(monkeypatch)
    folder = tmp_path / "spool"
    monkeypatch.setenv("CAIRN_SPOOL", str(folder))
    yield folder
    end_background()


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """What was warned of."""

    class Said(list[str]):
        def __iter__(self) -> Iterator[str]:
            return iter([each.getMessage() for each in caplog.records if each.name == "cairn"])

        def __len__(self) -> int:
            return sum(1 for _ in self)

    with caplog.at_level(logging.WARNING, "cairn"):
        yield Said()
