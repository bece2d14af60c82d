"""Jobs that wait: one of a kind and key, made with the change that needs them."""

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session

from registry.db import Database, now
from registry.ids import new_id
from registry.jobs.errors import JobEnded, JobNotFound
from registry.jobs.queue import Wanted, ask_for, ask_for_one, cancel_job, find_unfinished, get_job, list_jobs
from registry.models import Job
from tests.factories import make_project

PUSH = Wanted("tracker.push", "link-1", {"link": "link-1"}, "mlflow http://a")


def test_asking_again_for_what_waits_adds_nothing(session: Session) -> None:
    project = make_project(session)
    first = ask_for_one(session, project.id, PUSH, asked_by="jane")
    for _ in range(3):
        assert ask_for_one(session, project.id, PUSH, asked_by="joe").id == first.id
    assert (first.state, first.asked_by, first.arguments) == ("waiting", "jane", {"link": "link-1"})
    assert len(list_jobs(session, project_ids=[project.id])) == 1


def test_a_job_that_runs_does_not_stand_for_one_that_waits(session: Session) -> None:
    project = make_project(session)
    first = ask_for_one(session, project.id, PUSH, asked_by="jane")
    session.execute(update(Job).where(Job.id == first.id).values(state="running", worker="w", lease_until=now()))
    second = ask_for_one(session, project.id, PUSH, asked_by="jane")
    assert second.id != first.id
    found = find_unfinished(session, project.id, PUSH.kind, PUSH.key)
    assert found is not None
    assert found.id == first.id


def test_projects_do_not_share_jobs(session: Session) -> None:
    one, other = make_project(session), make_project(session)
    ask_for(session, one.id, [PUSH], asked_by="jane")
    ask_for(session, other.id, [PUSH], asked_by="jane")
    assert len(list_jobs(session, project_ids=[one.id])) == 1
    assert len(list_jobs(session, project_ids=[one.id, other.id])) == 2


def test_a_job_is_taken_back_with_the_change_that_asked_for_it(committed_database: Database) -> None:
    with committed_database.write() as session:
        project = make_project(session)

    def change() -> None:
        with committed_database.write() as session:
            ask_for(session, project.id, [PUSH], asked_by="jane")
            raise RuntimeError("the change fails")

    with pytest.raises(RuntimeError):
        change()
    with committed_database.read() as session:
        assert list_jobs(session) == []


def test_lists_filter_and_page(session: Session) -> None:
    project = make_project(session)
    for number in range(5):
        ask_for(session, project.id, [Wanted("tracker.refresh", f"k{number}", {})], asked_by="jane")
    ask_for(session, project.id, [PUSH], asked_by="jane")
    page = list_jobs(session, project_ids=[project.id], kind="tracker.refresh", limit=3)
    assert [row.key for row in page] == ["k4", "k3", "k2"]
    rest = list_jobs(session, project_ids=[project.id], kind="tracker.refresh", after=page[-1].id)
    assert [row.key for row in rest] == ["k1", "k0"]
    assert list_jobs(session, project_ids=[project.id], states=["done"]) == []


def test_a_cancelled_job_stays_cancelled(session: Session) -> None:
    project = make_project(session)
    job = ask_for_one(session, project.id, PUSH, asked_by="jane")
    assert cancel_job(session, job.id).state == "cancelled"
    with pytest.raises(JobEnded, match="it is cancelled"):
        cancel_job(session, job.id)
    assert ask_for_one(session, project.id, PUSH, asked_by="jane").id != job.id


def test_an_unknown_job_is_not_found(session: Session) -> None:
    with pytest.raises(JobNotFound):
        get_job(session, new_id())
    with pytest.raises(JobNotFound):
        cancel_job(session, new_id())
