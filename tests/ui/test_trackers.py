"""What a person reads of links to trackers and of jobs, and what the forms do."""

from dataclasses import replace

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry import strict_json
from registry.db import Database, now
from registry.ids import to_text
from registry.integrations.apply import apply_run
from registry.jobs.queue import Wanted, ask_for_one, list_jobs
from registry.models import Job, Worker
from registry.runs import RunRow
from registry.tokens import csrf_token
from registry.trackers.linking import link_run, list_links, set_state
from registry.trackers.links import TrackerPlace
from registry.types import Scope
from tests.factories import make_project, make_run
from tests.registry.integrations.test_sync import RUN
from tests.ui.conftest import sign_in
from tests.ui.reading import Page

HEX = "0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7"
URL = f"https://mlflow.example.org/#/experiments/4/runs/{HEX}"


@pytest.fixture
def run(session: Session) -> RunRow:
    return make_run(session, make_project(session, "p"), "a")


def read(browser: TestClient, path: str, status: int = 200) -> Page:
    answer = browser.get(path)
    assert answer.status_code == status, answer.text
    page = Page(answer.text)
    assert not [tag for tag in page.unclosed if tag not in ("html", "body", "tr", "td", "th", "li", "p", "dt", "dd")]
    return page


def send(browser: TestClient, path: str, **fields: str) -> tuple[int, str]:
    fields["csrf"] = csrf_token(browser.cookies.get("cairn_session") or "")
    answer = browser.post(path, data=fields, follow_redirects=False)
    return answer.status_code, answer.headers.get("location") or answer.text


def test_the_page_of_a_run_has_a_form_that_links_it(browser: TestClient, session: Session, run: RunRow) -> None:
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "url" in page.fields
    assert send(browser, f"/runs/{to_text(run.id)}/trackers", url=URL) == (303, f"/runs/{to_text(run.id)}/trackers")
    page = read(browser, f"/runs/{to_text(run.id)}")
    assert "not read yet" in page.text
    assert f"https://mlflow.example.org/#/experiments/4/runs/{HEX}" in page.links.values()
    assert [job.kind for job in list_jobs(session)] == ["tracker.refresh"]


def test_text_that_names_no_run_is_given_back_with_what_was_expected(browser: TestClient, run: RunRow) -> None:
    status, html = send(browser, f"/runs/{to_text(run.id)}/trackers", url="https://example.org/")
    assert status == 422
    page = Page(html)
    assert "expected the address of a run" in page.text
    assert page.fields["url"] == "https://example.org/"


def test_what_is_wrong_with_a_link_opens_its_page(browser: TestClient, session: Session, run: RunRow) -> None:
    assert "linked to no experiment tracker" in read(browser, f"/runs/{to_text(run.id)}/trackers").answer
    link, _ = link_run(session, run.id, TrackerPlace("mlflow", HEX, "https://mlflow.example.org"), actor="jane")
    set_state(session, link, state="refused", error="It asks for credentials (401).")
    page = read(browser, f"/runs/{to_text(run.id)}/trackers")
    assert page.answer == "MLflow refuses us. It asks for credentials (401)."


def test_two_trackers_that_disagree_are_both_shown(browser: TestClient, session: Session, run: RunRow) -> None:
    there = replace(RUN, name="a")
    apply_run(session, run.project_id, there)
    on_wandb = replace(there, kind="wandb", uri="https://api.wandb.ai", run_id="w1", owner="JANE", config={"lr": 0.3})
    apply_run(session, run.project_id, on_wandb)
    page = read(browser, f"/runs/{to_text(run.id)}")
    for words in ("here: jane", "MLflow: jane since", "W&B: JANE since", "here 0.1, there 0.3"):
        assert words in page.text


def test_a_link_is_read_now_and_taken_away(browser: TestClient, session: Session, run: RunRow) -> None:
    link, _ = link_run(session, run.id, TrackerPlace("mlflow", HEX, "https://mlflow.example.org"), actor="jane")
    path = f"/runs/{to_text(run.id)}/trackers/{to_text(link.id)}"
    status, place = send(browser, f"{path}/refresh")
    assert (status, place) == (303, f"/jobs/{to_text(list_jobs(session)[0].id)}")
    assert read(browser, place).links[run.name] == f"/runs/{to_text(run.id)}#trackers"
    assert send(browser, f"{path}/remove")[0] == 303
    assert list_links(session, run.project_id, run.id) == []


def test_who_may_only_read_sees_no_form(
    stranger: TestClient, database: Database, session: Session, run: RunRow
) -> None:
    sign_in(stranger, database, Scope.READ)
    link, _ = link_run(session, run.id, TrackerPlace("mlflow", HEX, "https://mlflow.example.org"), actor="jane")
    page = read(stranger, f"/runs/{to_text(run.id)}")
    assert "url" not in page.fields
    assert "Unlink" not in page.text
    path = f"/runs/{to_text(run.id)}/trackers"
    assert send(stranger, path, url=URL)[0] == 403
    assert send(stranger, f"{path}/{to_text(link.id)}/remove")[0] == 403


def test_jobs_that_nobody_does_are_said_first(browser: TestClient, session: Session, run: RunRow) -> None:
    page = read(browser, "/jobs")
    assert page.answer == "Nothing waits to be done."
    assert "cairn import mlflow" in page.text
    job = ask_for_one(session, run.project_id, Wanted("tracker.import", "k", {"uri": "u"}), asked_by="jane")
    assert read(browser, "/jobs").answer == "1 job waits and no worker is running."
    session.add(Worker(name="w1", started_at=now(), seen_at=now()))
    session.flush()
    assert read(browser, "/jobs").answer == "1 job is on the way."
    session.execute(update(Job).where(Job.id == job.id).values(error="it does not answer", error_code="x", failures=3))
    assert read(browser, "/jobs").answer == "1 job met a problem; the newest: it does not answer"
    assert "import from a tracker" in read(browser, "/jobs?state=waiting").links


def test_the_page_of_a_job_says_what_came_of_it_and_what_was_left_out(
    browser: TestClient, session: Session, run: RunRow
) -> None:
    job = ask_for_one(session, run.project_id, Wanted("tracker.import", "k", {"uri": "http://u"}), asked_by="jane")
    path = f"/jobs/{to_text(job.id)}"
    assert read(browser, path).answer == "Waits for a worker."
    report = {"runs": 3, "skipped": {"nobody says its step": {"count": 2, "examples": ["final", "last"]}}, "notes": []}
    values = {"state": "done", "report": strict_json.canonical(report), "ended_at": now()}
    session.execute(update(Job).where(Job.id == job.id).values(**values))
    page = read(browser, path)
    assert page.answer == "Done."
    assert "nobody says its step 2 final; last" in page.text
    assert "http://u" in page.text
    assert send(browser, f"{path}/cancel")[0] == 409
    assert read(browser, "/jobs/none", 404)
