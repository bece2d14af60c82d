"""Signals as a shell in the foreground leaves them."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_signal_is_ignored() -> Iterator[None]:
    """Under `nohup` or in a shell's background some are, and whatever a test starts would ignore them too."""
    ignored = [each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, signal.SIG_DFL)
    yield
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)
