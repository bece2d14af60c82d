"""A spool of the test's own, and the background ended when the test ends."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from cairn.capture import scheduler
from cairn.recorder import engine


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in (*scheduler.RANKS, *scheduler.WORLD_SIZES, "CAIRN_RUN", "CAIRN_ATTEMPT_KEY", "CAIRN_RESUMED_FROM"):
        monkeypatch.delenv(name, raising=False)
    engine.shut_down(0.2)  # what a test elsewhere has begun
    folder = tmp_path / "spool"
    monkeypatch.setenv("CAIRN_SPOOL", str(folder))
    yield folder
    engine.shut_down(0.2)


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
