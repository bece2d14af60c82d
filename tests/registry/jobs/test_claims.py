"""Who holds a job: one worker at a time, and another one after a kill."""

import threading
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from registry.db import Database, now
from registry.jobs import claims
from registry.jobs.claims import LONGEST_PAUSE, Claim, claim_next, pause_after
from registry.jobs.errors import LeaseLost, WorkerStopping
from registry.jobs.queue import Wanted, ask_for, cancel_job, get_job, list_jobs
from registry.models import Job
from tests.factories import make_project


@pytest.fixture(autouse=True)
def pauses_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that none is over before the test looks, however slow the machine."""
    monkeypatch.setattr(claims, "FIRST_PAUSE", timedelta(minutes=2))


def ask(database: Database, *keys: str, resource: str | None = None, kind: str = "work") -> int:
    with database.write() as session:
        project = make_project(session)
        ask_for(session, project.id, [Wanted(kind, key, {"key": key}, resource) for key in keys], asked_by="jane")
    return project.id


def claimed(database: Database, worker: str = "w1") -> Claim:
    claim = claim_next(database, worker)
    assert claim is not None
    return claim


def expire(database: Database, claim: Claim) -> None:
    with database.write() as session:
        past = now() - timedelta(seconds=1)
        session.execute(update(Job).where(Job.id == claim.job_id).values(lease_until=past))


def due_at_once(database: Database) -> None:
    with database.write() as session:
        session.execute(update(Job).where(Job.state == "waiting").values(not_before=now()))


def test_jobs_are_claimed_once_in_the_order_they_were_asked_for(committed_database: Database) -> None:
    ask(committed_database, "a", "b", "c")
    taken: list[str] = []
    lock = threading.Lock()

    def work(name: str) -> None:
        while (claim := claim_next(committed_database, name)) is not None:
            with lock:
                taken.append(claim.key)

    workers = [threading.Thread(target=work, args=(f"w{number}",)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(taken) == ["a", "b", "c"]
    assert claim_next(committed_database, "w") is None


def test_the_job_of_a_killed_worker_goes_on_from_its_position(committed_database: Database) -> None:
    ask(committed_database, "a")
    first = claimed(committed_database, "w1")
    with first.write() as session:
        first.save(session, position={"page": 7}, done=70, total=100, words="70 of 100")
    assert claim_next(committed_database, "w2") is None
    expire(committed_database, first)
    second = claimed(committed_database, "w2")
    assert (second.job_id, second.position, second.progress_done) == (first.job_id, {"page": 7}, 70)
    assert second.number == first.number + 1


def test_a_worker_that_was_only_slow_can_write_no_more(committed_database: Database) -> None:
    ask(committed_database, "a")
    slow = claimed(committed_database)
    expire(committed_database, slow)
    other = claimed(committed_database, "w2")
    with pytest.raises(LeaseLost), slow.write():
        raise AssertionError("never reached")
    with pytest.raises(LeaseLost):
        claims.finish(slow)
    with pytest.raises(LeaseLost):
        claims.try_again_later(slow, "x", "y")
    claims.finish(other, {"n": 1})
    with committed_database.read() as session:
        row = get_job(session, other.job_id)
    assert (row.state, row.report, row.worker) == ("done", {"n": 1}, None)


def test_two_jobs_of_one_key_never_run_at_once(committed_database: Database) -> None:
    project_id = ask(committed_database, "a")
    first = claimed(committed_database)
    with committed_database.write() as session:
        ask_for(session, project_id, [Wanted("work", "a", {})], asked_by="jane")
    assert claim_next(committed_database, "w2") is None
    claims.finish(first)
    assert claimed(committed_database, "w2").job_id != first.job_id


def test_a_cancelled_job_stops_its_worker_at_the_next_write(committed_database: Database) -> None:
    ask(committed_database, "a")
    claim = claimed(committed_database)
    with committed_database.write() as session:
        cancel_job(session, claim.job_id)
    with pytest.raises(LeaseLost), claim.write():
        raise AssertionError("never reached")


def test_a_worker_that_is_told_to_stop_gives_its_job_back(committed_database: Database) -> None:
    ask(committed_database, "a")
    stopping = threading.Event()
    claim = claim_next(committed_database, "w1", stopping)
    assert claim is not None
    stopping.set()
    with pytest.raises(WorkerStopping), claim.write():
        raise AssertionError("never reached")
    claims.release(claim)
    assert claimed(committed_database, "w2").job_id == claim.job_id


def test_a_failure_is_visible_and_waits_longer_each_time(committed_database: Database) -> None:
    ask(committed_database, "a")
    pauses = []
    for failures in range(1, 4):
        claim = claimed(committed_database)
        assert claim.failures == failures - 1
        pauses.append(claims.try_again_later(claim, "tracker-unreachable", "it does not answer"))
        assert claim_next(committed_database, "w") is None
        due_at_once(committed_database)
    assert pauses == sorted(pauses)
    with committed_database.read() as session:
        row = list_jobs(session)[0]
    assert (row.state, row.failures, row.error_code, row.error) == (
        "waiting",
        3,
        "tracker-unreachable",
        "it does not answer",
    )


def test_a_pause_never_grows_beyond_its_bound() -> None:
    assert pause_after(10_000) <= LONGEST_PAUSE * 1.2
    assert pause_after(1) < pause_after(5)


def test_progress_forgets_the_failures_before_it(committed_database: Database) -> None:
    ask(committed_database, "a")
    claims.try_again_later(claimed(committed_database), "x", "y")
    due_at_once(committed_database)
    claim = claimed(committed_database)
    with claim.write() as session:
        claim.save(session, done=1)
    with committed_database.read() as session:
        assert (get_job(session, claim.job_id).failures, get_job(session, claim.job_id).error) == (0, None)


def test_jobs_that_need_what_is_down_wait_together_and_go_on_together(committed_database: Database) -> None:
    """A thousand links to a tracker that is down are one try a pause, not a thousand."""
    ask(committed_database, "a", "b", "c", resource="mlflow http://down")
    ask(committed_database, "other", resource="mlflow http://up")
    claims.try_again_later(claimed(committed_database), "tracker-unreachable", "down")
    assert claimed(committed_database).key == "other"
    assert claim_next(committed_database, "w") is None
    with committed_database.write() as session:  # the pause of one is over: it alone tries
        first = session.scalars(select(Job.id).where(Job.key == "a")).one()
        session.execute(update(Job).where(Job.id == first).values(not_before=now()))
    claims.finish(claimed(committed_database))
    assert {claimed(committed_database).key, claimed(committed_database).key} == {"b", "c"}


def test_a_newer_job_of_the_same_key_takes_over_with_the_failures_so_far(committed_database: Database) -> None:
    project_id = ask(committed_database, "a")
    claim = claimed(committed_database)
    with committed_database.write() as session:
        ask_for(session, project_id, [Wanted("work", "a", {})], asked_by="jane")
    claims.try_again_later(claim, "x", "down")
    with committed_database.read() as session:
        newer, older = list_jobs(session)
    assert (older.state, newer.state, newer.failures) == ("cancelled", "waiting", 1)
    assert claim_next(committed_database, "w") is None


def test_what_a_job_wrote_is_taken_back_with_its_claim(committed_database: Database) -> None:
    """The proof and the work are one transaction."""
    ask(committed_database, "a")
    claim = claimed(committed_database)

    def work() -> None:
        with claim.write() as session:
            claim.save(session, done=5)
            session.execute(update(Job).where(Job.id == claim.job_id).values(claims=Job.claims + 1))
            claim.save(session, done=6)

    with pytest.raises(LeaseLost):
        work()
    with committed_database.read() as session:
        assert get_job(session, claim.job_id).progress_done == 0
