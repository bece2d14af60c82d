"""Between tries the sender waits longer each time, never in step with other jobs, and as long as it was asked to."""

from pathlib import Path

import pytest
from cairn.errors import CairnError, TooManyRequests, Unavailable
from cairn.spool import sending
from cairn.spool.sending import Sender
from cairn.spool.writer import SpoolWriter


@pytest.fixture
def sender(tmp_path: Path) -> Sender:
    writer = SpoolWriter([tmp_path], lambda message: None)
    return Sender(writer, [tmp_path], None, lambda: None, lambda message: None)  # type: ignore[arg-type, return-value]


def pauses(sender: Sender, fault: CairnError, count: int) -> list[float]:
    return [sender._after(fault) for _ in range(count)]


def test_pauses_double_up_to_a_minute_and_are_never_the_same(sender: Sender) -> None:
    found = pauses(sender, Unavailable("down", status=503), 14)
    for tried, pause in enumerate(found, start=1):
        whole = min(sending.FIRST_PAUSE_SECONDS * 2.0**tried, sending.MAX_PAUSE_SECONDS)
        assert whole / 2 <= pause <= whole
    assert len(set(found)) == len(found)


def test_what_the_service_asks_for_is_the_least_but_no_more_than_an_hour(sender: Sender) -> None:
    assert pauses(sender, TooManyRequests("later", status=429, retry_after=90.0), 3) == [90.0] * 3
    assert pauses(sender, TooManyRequests("later", status=429, retry_after=1e9), 1) == [3_600.0]
