"""Work that waits without a worker is a fault; where one is, only what waits long is worth a word."""

from datetime import timedelta

from sqlalchemy import update
from sqlalchemy.orm import Session

from registry.db import now
from registry.health.shapes import Found
from registry.health.work import PATIENCE, look_at_work
from registry.jobs.queue import Wanted, ask_for_one
from registry.models import Job, OutboxEvent, Worker
from registry.outbox import announce
from tests.factories import make_checkpoint, make_project, make_run

PUSH = Wanted("tracker.push", "link-1", {"link": "link-1"})


def found(session: Session) -> dict[str, Found]:
    session.flush()
    return {each.subject: each for each in look_at_work(session)}


def make_worker(session: Session, seen_ago: timedelta = timedelta()) -> None:
    session.add(Worker(name="host-1", started_at=now() - seen_ago, seen_at=now() - seen_ago))


def wait(session: Session, ago: timedelta) -> None:
    job = ask_for_one(session, make_project(session).id, PUSH, asked_by="jane")
    session.execute(update(Job).where(Job.id == job.id).values(not_before=now() - ago))


def test_nothing_to_do_needs_no_worker(session: Session) -> None:
    assert {each.health for each in found(session).values()} == {"ok"}


def test_a_job_that_waits_without_a_worker_is_a_fault(session: Session) -> None:
    wait(session, timedelta(seconds=1))
    assert found(session)["workers"].health == "fault"
    make_worker(session, timedelta(hours=1))
    assert found(session)["workers"].health == "fault", "one that was last heard of an hour ago is none"


def test_an_event_that_nobody_delivers_is_work_too(session: Session) -> None:
    project = make_project(session)
    checkpoint_id = make_checkpoint(session, make_run(session, project))
    session.execute(update(OutboxEvent).values(delivered_at=now()))
    assert found(session)["workers"].health == "ok"
    announce(session, project.id, "checkpoint.committed", [checkpoint_id])
    assert found(session)["workers"].health == "fault"


def test_what_is_not_due_yet_does_not_wait(session: Session) -> None:
    wait(session, -timedelta(minutes=5))
    assert found(session)["workers"].health == "ok"


def test_a_long_wait_beside_a_worker_is_a_warning(session: Session) -> None:
    make_worker(session)
    wait(session, PATIENCE / 2)
    assert "work" not in found(session)
    session.execute(update(Job).values(not_before=now() - 2 * PATIENCE))
    assert found(session)["work"].health == "warning"


def test_jobs_that_failed_within_a_day_are_counted_with_the_commonest_reason(session: Session) -> None:
    project = make_project(session)
    for number, (reason, ago) in enumerate([("host down", 1), ("host down", 2), ("no token", 3), ("old", 30)]):
        job = ask_for_one(session, project.id, Wanted("tracker.push", str(number), {}), asked_by="jane")
        ended = now() - timedelta(hours=ago)
        session.execute(update(Job).where(Job.id == job.id).values(state="failed", error=reason, ended_at=ended))
    jobs = found(session)["jobs"]
    assert jobs.health == "warning"
    assert jobs.said == "3 failed within a day, most often tracker.push: host down"
