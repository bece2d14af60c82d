"""A worker does what waits: errors become states, a kill costs nothing that was done, events are delivered once."""

import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from registry import outbox
from registry.config import Settings
from registry.db import Database, now
from registry.errors import Invalid, Unavailable
from registry.ids import new_id
from registry.jobs import delivery, worker
from registry.jobs.claims import Claim
from registry.jobs.delivery import Event, deliver_events
from registry.jobs.queue import JobRow, Wanted, ask_for, list_jobs
from registry.jobs.worker import JobWorker, id_of_moment
from registry.jobs.workers import list_workers
from registry.models import Job, OutboxEvent
from tests.client.until import until
from tests.factories import make_project

ROOT = Path(__file__).parents[3]


class NotNow(Unavailable):
    code = "not-now"


class Never(Invalid):
    code = "never"


def succeed(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    return {"key": claim.key}


def refuse(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    raise Never("it cannot be done")


def wait(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    raise NotNow("not just now")


def break_down(claim: Claim, settings: Settings) -> Mapping[str, Any]:
    raise ZeroDivisionError("s3cret")


@pytest.fixture
def doing(committed_database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> JobWorker:
    kinds = {each.__name__: f"{__name__}:{each.__name__}" for each in (succeed, refuse, wait, break_down)}
    monkeypatch.setattr(worker, "KINDS", kinds)
    return JobWorker(committed_database, Settings(tmp_path, "sqlite://"))


def done(database: Database, worker: JobWorker, kind: str, times: int = 1) -> JobRow:
    with database.write() as session:
        project = make_project(session)
        ask_for(session, project.id, [Wanted(kind, "k", {})], asked_by="jane")
    for _ in range(times):
        with database.write() as session:
            session.execute(update(Job).where(Job.state == "waiting").values(not_before=now()))
        worker.work_once()
    with database.read() as session:
        return list_jobs(session, project_ids=[project.id])[0]


def test_a_job_that_succeeds_says_what_came_of_it(committed_database: Database, doing: JobWorker) -> None:
    row = done(committed_database, doing, "succeed")
    assert (row.state, row.report, row.error) == ("done", {"key": "k"}, None)


def test_an_error_of_the_domain_ends_a_job_with_its_words(committed_database: Database, doing: JobWorker) -> None:
    row = done(committed_database, doing, "refuse")
    assert (row.state, row.error_code, row.error) == ("failed", "never", "it cannot be done")


def test_what_is_not_there_just_now_is_tried_for_ever(committed_database: Database, doing: JobWorker) -> None:
    row = done(committed_database, doing, "wait", times=20)
    assert (row.state, row.error_code, row.failures) == ("waiting", "not-now", 20)


def test_a_fault_of_ours_is_tried_again(committed_database: Database, doing: JobWorker) -> None:
    row = done(committed_database, doing, "break_down", times=2)
    assert (row.state, row.error_code) == ("waiting", "job-broke")


def test_a_fault_of_ours_is_tried_a_few_times_and_its_words_are_not_kept(
    committed_database: Database, doing: JobWorker, caplog: pytest.LogCaptureFixture
) -> None:
    row = done(committed_database, doing, "break_down", times=5)
    assert (row.state, row.error_code) == ("failed", "job-broke")
    assert "ZeroDivisionError in test_worker.py" in str(row.error)
    assert "s3cret" not in str(row.error) + caplog.text


def test_a_worker_says_that_it_is_there(committed_database: Database, doing: JobWorker) -> None:
    doing.work_once()
    with committed_database.read() as session:
        (row,) = list_workers(session)
    assert (row.name, row.alive) == (doing.name, True)


def test_a_worker_stops_when_it_is_told_to(committed_database: Database, doing: JobWorker) -> None:
    thread = threading.Thread(target=doing.run)
    thread.start()
    doing.stop()
    thread.join(60)
    assert not thread.is_alive()


def test_old_jobs_and_delivered_events_are_forgotten_and_no_other(
    committed_database: Database, doing: JobWorker
) -> None:
    long_ago = id_of_moment(now() - timedelta(days=60))
    with committed_database.write() as session:
        project = make_project(session)
        for number, state in enumerate(("done", "failed", "waiting")):
            ask_for(
                session, project.id, [Wanted("none", state, {}, not_before=now() + timedelta(days=1))], asked_by="x"
            )
            session.execute(update(Job).where(Job.key == state).values(id=long_ago + number, state=state))
        ask_for(session, project.id, [Wanted("none", "new", {})], asked_by="x")
        session.execute(update(Job).where(Job.key == "new").values(state="done"))
        for number, at in ((1, now()), (2, None)):
            event = {"project_id": project.id, "topic": "t", "subject_id": 1, "payload": "{}", "created_at": now()}
            session.add(OutboxEvent(id=long_ago + number, delivered_at=at, **event))
        session.flush()
        worker._forget_old(session)
        assert set(session.scalars(select(Job.key))) == {"waiting", "new"}
        assert session.scalars(select(OutboxEvent.id)).all() == [long_ago + 2]
    assert id_of_moment(now() - timedelta(seconds=1)) < new_id() < id_of_moment(now() + timedelta(seconds=1))


RECEIVED: list[int] = []


def receive(session: Session, events: list[Event]) -> None:
    RECEIVED.extend(event.subject_id for event in events)


def test_each_event_is_delivered_once_in_its_order_however_many_workers_there_are(
    committed_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "RECEIVERS", (f"{__name__}:receive",))
    monkeypatch.setattr(delivery, "BATCH", 7)
    RECEIVED.clear()
    with committed_database.write() as session:
        project = make_project(session)
        outbox.announce(session, project.id, "checkpoint.committed", range(1, 101))
    threads = [threading.Thread(target=_deliver_all, args=(committed_database,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(RECEIVED) == list(range(1, 101))
    with committed_database.read() as session:
        waiting = select(func.count()).select_from(OutboxEvent).where(OutboxEvent.delivered_at.is_(None))
        assert session.scalar(waiting) == 0


def _deliver_all(database: Database) -> None:
    while deliver_events(database):
        pass


COUNTING = """
import os, sys, time
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from registry.config import Settings
from registry.db import Database
from registry.jobs import worker, claims
from datetime import timedelta
claims.LEASE = timedelta(seconds=1)
worker.RENEW_SECONDS = 0.2
worker.IDLE_SECONDS = 0.05
worker.CLOCKS = ()
from sqlalchemy import text
def die(number):
    # Waits to be killed, once.
    folder = Path(sys.argv[3])
    if (folder / f"killed-{number}").exists():
        return
    (folder / f"pid-{os.getpid()}").write_text(str(os.getpid()))
    (folder / f"pid-{os.getpid()}").rename(folder / f"dying-{number}")
    while not (folder / f"killed-{number}").exists():
        time.sleep(0.01)
def count(claim, settings):
    for number in range((claim.position or 0) + 1, 61):
        if number in (13, 39):
            die(number)
        with claim.write() as session:
            session.execute(text("INSERT INTO worker (name, started_at, seen_at) SELECT :name, started_at, seen_at "
                                 "FROM worker LIMIT 1"), {"name": f"step-{number}"})
            claim.save(session, position=number, done=number, total=60)
            if number in (26, 52):
                die(number)
    return {"counted": 60}
sys.modules["counting"] = sys.modules["__main__"]
worker.KINDS = {"count": "counting:count"}
worker.JobWorker(Database(sys.argv[1]), Settings(Path("/tmp"), sys.argv[1])).run()
"""


def test_a_job_survives_kills_and_does_each_step_once(committed_database: Database, tmp_path: Path) -> None:
    """Two workers at once; who works is killed between two steps and within one: none runs twice, none is left out."""
    url = committed_database.url.render_as_string(hide_password=False)
    script = tmp_path / "counting.py"
    script.write_text(COUNTING)
    with committed_database.write() as session:
        project = make_project(session)
        ask_for(session, project.id, [Wanted("count", "k", {})], asked_by="jane")

    def start() -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(script), url, str(ROOT), str(tmp_path)]
        return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ""})

    def job() -> JobRow:
        with committed_database.read() as session:
            (row,) = list_jobs(session)
        return row

    workers = [start(), start()]
    try:
        for number in (13, 26, 39, 52):
            until((tmp_path / f"dying-{number}").exists, 180)
            pid = int((tmp_path / f"dying-{number}").read_text())
            holder = next(each for each in workers if each.pid == pid)
            holder.kill()
            holder.wait()
            workers[workers.index(holder)] = start()
            assert job().progress_done == number - 1
            (tmp_path / f"killed-{number}").touch()
        until(lambda: job().state in ("done", "failed"), 180)
    finally:
        for each in workers:
            each.kill()
            each.wait()
    row = job()
    assert (row.state, row.report, row.failures) == ("done", {"counted": 60}, 0), row.error
    with committed_database.read() as session:
        steps = {worker.name for worker in list_workers(session) if worker.name.startswith("step-")}
    assert steps == {f"step-{number}" for number in range(1, 61)}
