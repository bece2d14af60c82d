"""What the service notices by itself, and what it never takes for an interruption."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from registry.attempts import amend_attempt, get_attempt
from registry.db import Database, now
from registry.ids import new_id
from registry.incidents.pulse import LONGEST, RECENT, read_intervals
from registry.incidents.watch import STALLED_AFTER, Noticed, find_silent, find_stalled, open_noticed
from registry.models import AttemptPulse, Incident
from registry.models.attempt import WATCHED
from registry.resume_points import ResumePoint
from registry.upsert import insert_new
from tests.factories import make_attempt, make_checkpoint, make_run
from tests.registry.incidents.steps import LOST_AFTER, beat, beats, incidents_of, look

HOUR_AGO = timedelta(hours=1)


def test_missed_heartbeats_open_one_lost_incident_with_the_steps_it_cost(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    make_checkpoint(session, run, 100, saved_at=start)
    last = beats(session, run, attempt, start, [101, 110, 130])
    (opened,) = look(session)
    assert (opened.kind, opened.cause, opened.opened_by) == ("lost", "unknown", "cairn")
    assert (opened.last_step, opened.steps_lost, opened.occurred_at) == (130, 30, last)
    assert opened.closed_at is None
    assert get_attempt(session, run.id, 1).state == "lost"
    assert look(session) == []


def test_an_attempt_that_is_heard_of_in_time_is_not_lost(session: Session) -> None:
    run, heard = make_run(session), now()
    beat(session, run, make_attempt(session, run, key="a"), heard, 5)
    assert look(session, heard + timedelta(seconds=119)) == []


@pytest.mark.parametrize("state", ["finished", "failed", "stopped"])
def test_an_attempt_that_ended_is_never_lost(session: Session, state: str) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beat(session, run, attempt, now() - HOUR_AGO, 5)
    amend_attempt(session, run.id, attempt.number, {"state": state, "ended_at": now() - HOUR_AGO})
    assert look(session) == []


def test_an_attempt_without_any_heartbeat_is_never_lost_nor_stalled(session: Session) -> None:
    run = make_run(session)
    for place in range(5):
        make_checkpoint(session, run, 100 * place, saved_at=now() - timedelta(days=9 - place))
    assert look(session) == []


def test_a_host_whose_clock_is_behind_is_not_lost_while_it_is_heard(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    amend_attempt(session, run.id, attempt.number, {"heartbeat_at": now() - HOUR_AGO, "step": 5})
    assert look(session) == []
    assert len(look(session, now() + timedelta(seconds=61))) == 1


def test_a_clock_that_is_ahead_does_not_hide_a_lost_host(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    amend_attempt(session, run.id, attempt.number, {"heartbeat_at": now() + timedelta(minutes=5), "step": 5})
    pulse = session.get_one(AttemptPulse, (run.project_id, attempt.id))
    assert pulse.step_at is not None
    assert pulse.step_at <= now()
    assert len(look(session, now() + timedelta(minutes=8))) == 1


def test_a_late_heartbeat_closes_it_with_the_recovery_time(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, start, [1, 2, 3])
    look(session)
    again = now()
    beat(session, run, attempt, again, 4)
    (incident,) = incidents_of(session, run)
    assert (incident.ending, incident.recovered_at, incident.steps_lost) == ("recovered", again, 0)
    assert incident.recovery_seconds == (again - last).total_seconds()
    assert get_attempt(session, run.id, 1).state == "running"


def test_a_save_of_the_same_attempt_shows_that_it_lives(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, start, [1, 2, 3])
    look(session)
    make_checkpoint(session, run, 3, saved_at=start + timedelta(minutes=3))
    assert incidents_of(session, run)[0].occurred_at == start + timedelta(minutes=3)
    saved_at = now() + timedelta(seconds=1)
    make_checkpoint(session, run, 40, saved_at=saved_at)
    (incident,) = incidents_of(session, run)
    assert (incident.ending, incident.recovered_at) == ("recovered", saved_at)
    assert get_attempt(session, run.id, 1).state == "running"


def test_a_heartbeat_from_before_it_was_noticed_only_moves_the_time(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, start, [1, 2, 3])
    look(session)
    late = start + timedelta(minutes=5)
    beat(session, run, attempt, late, 30)
    (incident,) = incidents_of(session, run)
    assert (incident.closed_at, incident.occurred_at, incident.last_step) == (None, late, 30)
    assert get_attempt(session, run.id, 1).state == "lost"


def test_a_commit_of_the_next_attempt_closes_it_at_the_time_of_the_save(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    saved = make_checkpoint(session, run, 100, saved_at=start)
    last = beats(session, run, attempt, start, [101, 150])
    look(session)
    make_attempt(session, run, key="b", resumed_from=ResumePoint(checkpoint_id=saved))
    recovered = now() - timedelta(minutes=10)
    make_checkpoint(session, run, 160, saved_at=recovered)
    (incident,) = incidents_of(session, run)
    assert (incident.ending, incident.recovered_at, incident.steps_lost) == ("recovered", recovered, 50)
    assert incident.recovery_seconds == (recovered - last).total_seconds()
    assert get_attempt(session, run.id, 1).state == "lost"


def test_the_first_step_of_the_next_attempt_closes_it_too(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    saved = make_checkpoint(session, run, 100, saved_at=start)
    beats(session, run, attempt, start, [101, 150])
    look(session)
    following = make_attempt(session, run, key="b", resumed_from=ResumePoint(checkpoint_id=saved))
    beat(session, run, following, now() - timedelta(minutes=9), 100)
    assert incidents_of(session, run)[0].closed_at is None
    beat(session, run, following, now() - timedelta(minutes=8), 101)
    assert incidents_of(session, run)[0].ending == "recovered"


def test_a_record_from_before_the_incident_closes_nothing(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, start, [101, 150])
    look(session)
    make_checkpoint(session, run, 120, saved_at=start - timedelta(minutes=1))
    (incident,) = incidents_of(session, run)
    assert (incident.closed_at, incident.steps_lost) == (None, 30)


# ---- stalled


def test_three_intervals_without_a_step_are_a_stall(session: Session) -> None:
    run, start = make_run(session), now()
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, start - timedelta(seconds=60), [1, 2, 3, 4])
    for seconds in (10, 20, 30):
        beat(session, run, attempt, last + timedelta(seconds=seconds), 4)
    assert look(session, last + timedelta(seconds=30)) == []
    (opened,) = look(session, last + timedelta(seconds=31))
    assert (opened.kind, opened.occurred_at, opened.last_step) == ("stalled", last, 4)
    assert get_attempt(session, run.id, 1).state == "stalled"


@pytest.mark.parametrize("steps", [[1], [1, 2, 3], [1, 1, 1, 1]])
def test_before_three_intervals_are_known_nothing_is_a_stall(session: Session, steps: list[int]) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - timedelta(seconds=100), steps)
    beat(session, run, attempt, last + timedelta(seconds=50), steps[-1])
    assert look(session, last + timedelta(seconds=100)) == []


def test_the_interval_is_that_of_the_saves_where_heartbeats_name_no_step(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    for place in range(4):
        make_checkpoint(session, run, 100 * place, saved_at=start + timedelta(minutes=5 * place))
    last = start + timedelta(minutes=15)
    beat(session, run, attempt, last + timedelta(minutes=14))
    assert look(session, last + timedelta(minutes=15)) == []
    beat(session, run, attempt, last + timedelta(minutes=15))
    (opened,) = look(session, last + timedelta(minutes=16))
    assert (opened.kind, opened.occurred_at) == ("stalled", last)


def test_a_pause_as_long_as_one_that_was_seen_before_is_no_stall(session: Session) -> None:
    """An evaluation of ten minutes each hour, and heartbeats with a step every 20 s in between."""
    run, start = make_run(session), now() - timedelta(hours=3)
    attempt, step, at = make_attempt(session, run, key="a"), 0, start
    for seconds in (*[20] * 150, 600, *[20] * 150):
        step, at = step + 1, at + timedelta(seconds=seconds)
        beat(session, run, attempt, at, step)
    for minutes in (5, 10, 15):
        beat(session, run, attempt, at + timedelta(minutes=minutes), step)
        assert look(session, at + timedelta(minutes=minutes), STALLED_AFTER) == []
    (opened,) = look(session, at + timedelta(minutes=15, seconds=1), STALLED_AFTER)
    assert (opened.kind, opened.occurred_at) == ("stalled", at)
    pulse = session.get_one(AttemptPulse, (run.project_id, attempt.id))
    assert len(read_intervals(pulse.intervals)) == RECENT + LONGEST


def test_short_steps_are_given_time_for_the_first_evaluation(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - timedelta(minutes=10), [1, 21, 41, 61, 81])
    for seconds in range(20, 310, 20):
        beat(session, run, attempt, last + timedelta(seconds=seconds), 81)
        assert look(session, last + timedelta(seconds=seconds), STALLED_AFTER) == []
    assert len(look(session, last + timedelta(seconds=301), STALLED_AFTER)) == 1


def test_saves_a_second_apart_are_no_measure_of_heartbeats_twenty_apart(session: Session) -> None:
    run, start = make_run(session), now() - timedelta(minutes=2)
    attempt = make_attempt(session, run, key="a")
    for place in range(10):
        make_checkpoint(session, run, place, saved_at=start + timedelta(seconds=place))
    for seconds in (0, 20, 40):
        beat(session, run, attempt, start + timedelta(seconds=seconds), 9)
        assert look(session, start + timedelta(seconds=seconds), STALLED_AFTER) == []


def test_a_stall_loses_no_step_until_the_process_falls_silent(session: Session) -> None:
    run, start = make_run(session), now() - HOUR_AGO
    attempt = make_attempt(session, run, key="a")
    make_checkpoint(session, run, 1, saved_at=start)
    last = beats(session, run, attempt, start, [1, 2, 3, 4, 5])
    heard = last + timedelta(seconds=60)
    beat(session, run, attempt, heard, 5)
    (stalled,) = look(session, heard)
    assert (stalled.kind, stalled.steps_lost) == ("stalled", None)
    assert look(session, heard + LOST_AFTER) == []
    (lost,) = look(session, heard + LOST_AFTER + timedelta(seconds=1))
    assert lost.id == stalled.id
    assert (lost.kind, lost.steps_lost, lost.occurred_at, lost.closed_at) == ("lost", 4, heard, None)
    assert get_attempt(session, run.id, 1).state == "lost"
    assert look(session) == []
    beat(session, run, attempt, now() + timedelta(seconds=1), 6)
    (incident,) = incidents_of(session, run)
    assert (incident.ending, incident.steps_lost) == ("recovered", 0)
    assert get_attempt(session, run.id, 1).state == "running"


def test_a_step_ends_a_stall_and_no_step_is_counted_as_lost(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - timedelta(minutes=5), [1, 2, 3, 4])
    beat(session, run, attempt, last + timedelta(seconds=40), 4)
    look(session, last + timedelta(seconds=41))
    beat(session, run, attempt, last + timedelta(seconds=60), 5)
    (incident,) = incidents_of(session, run)
    assert (incident.ending, incident.recovery_seconds, incident.steps_lost) == ("recovered", 60.0, 0)
    assert get_attempt(session, run.id, 1).state == "running"


def test_an_older_attempt_that_still_beats_is_no_stall(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - timedelta(seconds=100), [1, 2, 3, 4])
    make_attempt(session, run, key="b")
    beat(session, run, attempt, last + timedelta(seconds=60), 4)
    assert look(session, last + timedelta(seconds=60)) == []


# ---- several processes, and what a look costs


def test_of_two_processes_that_notice_at_once_one_opens_the_incident(committed_database: Database) -> None:
    database = committed_database
    with database.write() as session:
        run = make_run(session)
        attempt = make_attempt(session, run, key="a")
        beats(session, run, attempt, now() - HOUR_AGO, [1, 2, 3])
    with database.read() as session:
        seen = find_silent(session, now(), LOST_AFTER)
    opened: list[int] = []
    ready = threading.Barrier(4)

    def process() -> None:
        ready.wait()
        with database.write() as session:
            opened.extend(open_noticed(session, seen, now(), LOST_AFTER))

    threads = [threading.Thread(target=process) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(opened) == 1
    with database.read() as session:
        assert len(incidents_of(session, run)) == 1


def test_the_database_takes_one_open_incident_of_an_attempt_and_kind(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - HOUR_AGO, [1, 2, 3])
    (opened,) = look(session)
    row = {column.name: getattr(session.get_one(Incident, opened.id), column.name) for column in Incident.__table__.c}
    assert insert_new(session, Incident, [row | {"id": new_id()}]) == set()
    assert insert_new(session, Incident, [row | {"id": (other := new_id()), "kind": "stalled"}]) == {other}


def test_an_attempt_that_was_heard_of_meanwhile_is_left_alone(session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    last = beats(session, run, attempt, now() - HOUR_AGO, [1, 2, 3])
    seen = [Noticed(run.id, attempt.id, kind, last) for kind in ("lost", "stalled")]
    beat(session, run, attempt, now(), 4)
    assert open_noticed(session, seen, now(), LOST_AFTER) == []


def test_a_look_reads_the_index_of_running_attempts_and_no_others(committed_database: Database) -> None:
    # What earlier tests left in tables and indexes would count for the plan.
    with committed_database.write() as session:
        for run in [make_run(session) for _ in range(30)]:
            for place in range(10):
                make_attempt(session, run, key=f"a{place}")
        beat(session, run, make_attempt(session, run, key="last"), now() - HOUR_AGO, 3)
        explain = "EXPLAIN QUERY PLAN" if session.get_bind().dialect.name == "sqlite" else "EXPLAIN"
        query = f"{explain} SELECT id FROM attempt WHERE {WATCHED} AND heartbeat_at < {_early(session)}"
        if session.get_bind().dialect.name == "postgresql":
            session.execute(text("ANALYZE attempt"))
        plan = " ".join(str(row) for row in session.execute(text(query)))
        assert "ix_attempt_watched" in plan
        assert len(find_silent(session, now(), LOST_AFTER)) == 1
        assert find_stalled(session, now(), LOST_AFTER) == []


def _early(session: Session) -> str:
    return "1" if session.get_bind().dialect.name == "sqlite" else "'2020-01-01'"
