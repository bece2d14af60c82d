"""The recorder's background in the process of the tests: ready before a test goes on, over before the next begins."""

import threading

import pytest
from cairn.recorder import engine
from cairn.spool import sending, writer

from tests.client.until import LATEST, until

THREADS = {"cairn-keeper", "cairn-pulse", "cairn-sender"}


def wait_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a call says of its record shall not hang on how busy the machine is, and its disk."""
    monkeypatch.setattr(engine, "START_SECONDS", LATEST)
    monkeypatch.setattr(writer, "SLOW_SECONDS", LATEST)


def end_background() -> None:
    """Ends it with its threads: one that lived on would meet what the next test patches, and send to its service."""
    with pytest.MonkeyPatch.context() as hasty:
        hasty.setattr(sending, "FIRST_PAUSE_SECONDS", 0.0)
        engine.shut_down(0.2)
        until(lambda: not any(each.name in THREADS for each in threading.enumerate()))
