"""The watching thread: what a round does, and that nothing ends it but its own stop."""

import logging
import threading
from datetime import timedelta

import pytest
from sqlalchemy import event

from api.watchdog import Watchdog, look
from registry.db import Database, now
from tests.factories import make_attempt, make_run
from tests.registry.incidents.steps import beat, incidents_of

LOST_AFTER = timedelta(seconds=120)


def test_a_round_opens_what_it_notices_and_commits_it(committed_database: Database) -> None:
    with committed_database.write() as session:
        run = make_run(session)
        beat(session, run, make_attempt(session, run, key="a"), now() - timedelta(hours=1), 5)
    assert len(look(committed_database, LOST_AFTER)) == 1
    assert look(committed_database, LOST_AFTER) == []
    with committed_database.read() as session:
        assert [each.kind for each in incidents_of(session, run)] == ["lost"]


def test_a_round_over_a_registry_at_rest_does_not_take_the_writer(
    committed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise AssertionError("the writing connection was taken")

    monkeypatch.setattr(committed_database, "open_write", refuse)
    assert look(committed_database, LOST_AFTER) == []


def test_a_database_that_is_away_ends_no_watch_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    away, rounds = Database("sqlite:////nowhere/at/all.db"), threading.Semaphore(0)
    event.listen(away.reader, "do_connect", lambda *_: rounds.release())
    with caplog.at_level(logging.WARNING, logger="cairn.watchdog"):
        watchdog = Watchdog(away, 0.001, 120)
        watchdog.start()
        try:
            assert all(rounds.acquire(timeout=60) for _ in range(5))
        finally:
            watchdog.stop()
            watchdog.join(60)
    assert not watchdog.is_alive()
    said = [record.getMessage() for record in caplog.records if record.name == "cairn.watchdog"]
    assert said == ["could not look for lost attempts: OperationalError"]
    away.dispose()
