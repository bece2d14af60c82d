"""Waiting for what threads and processes do: for the event itself, however long a busy machine takes to it."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
LATEST = 60.0  # seconds that only a failure takes


def until(found: Callable[[], T], seconds: float = LATEST) -> T:
    """The first answer that is not empty; fails where there is none for so long."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert time.monotonic() < deadline, f"waited for {seconds:g} s in vain"
        time.sleep(0.02)
    return value
