"""Links, tracking and imports over HTTP: statuses, shapes, and who may do what."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.db import Database
from registry.ids import to_text
from registry.tokens import issue_token
from registry.types import Scope
from tests.api.conftest import client_of
from tests.factories import make_project, make_run

API = "/api/v1"
RUN = "0e1f2a3b4c5d6e7f8091a2b3c4d5e6f7"
URL = f"https://jane:s3cret@mlflow.example.org/#/experiments/4/runs/{RUN}"


@pytest.fixture
def run(session: Session) -> str:
    return to_text(make_run(session, make_project(session, "p"), "a").id)


def link(client: TestClient, run: str, body: Any = None, status: int = 201) -> Any:
    answer = client.post(f"{API}/runs/{run}/trackers", json=body or {"url": URL})
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_run_is_linked_by_an_address_and_the_same_again_is_the_same(client: TestClient, run: str) -> None:
    made = link(client, run)
    assert (made["kind"], made["uri"], made["project"], made["run_id"]) == (
        "mlflow",
        "https://mlflow.example.org",
        "4",
        RUN,
    )
    assert (made["state"], made["push_state"], made["run"]["name"]) == ("new", "off", "a")
    assert link(client, run, status=200)["id"] == made["id"]
    link(client, run, {"url": "https://wandb.ai/team/llm/runs/3fy8k2?workspace=x"})
    page = client.get(f"{API}/runs/{run}/trackers").json()
    assert [each["kind"] for each in page["items"]] == ["mlflow", "wandb"]
    assert (page["next_cursor"], page["fields"]) == (None, [])
    assert "s3cret" not in client.get(f"{API}/runs/{run}/trackers").text
    assert [each["uri"] for each in client.get(f"{API}/runs/{run}").json()["trackers"]] == [
        "https://mlflow.example.org",
        "https://api.wandb.ai",
    ]


def test_a_run_is_linked_by_ids(client: TestClient, run: str) -> None:
    made = link(client, run, {"kind": "wandb", "run_id": "3fy8k2", "entity": "team", "project": "llm"})
    assert (made["kind"], made["entity"], made["uri"]) == ("wandb", "team", None)


def test_a_password_in_an_address_is_never_kept_whoever_sends_it(client: TestClient, run: str) -> None:
    trackers = [{"kind": "mlflow", "run_id": "x", "uri": "https://jane:s3cret@mlflow.example.org/base/"}]
    answer = client.post(f"{API}/runs", json={"project": "p", "name": "b", "trackers": trackers})
    assert answer.json()["trackers"][0]["uri"] == "https://mlflow.example.org/base"
    made = link(client, run, {"kind": "mlflow", "run_id": "x", "uri": "https://jane:s3cret@mlflow.example.org"})
    assert made["uri"] == "https://mlflow.example.org"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, ""),
        ({"url": URL, "run_id": "x"}, ""),
        ({"run_id": "x"}, ""),
        ({"url": "https://example.org"}, "/url"),
        ({"url": URL, "kind": "wandb"}, "/kind"),
        ({"kind": "tensorboard", "run_id": "x"}, "/kind"),
        ({"url": URL, "surprise": 1}, "/surprise"),
    ],
)
def test_what_names_no_run_is_refused_with_its_place(client: TestClient, run: str, body: Any, pointer: str) -> None:
    answer = client.post(f"{API}/runs/{run}/trackers", json=body)
    assert answer.status_code == 422, answer.text
    assert pointer in [error["pointer"] for error in answer.json()["errors"]]
    assert "s3cret" not in answer.text or "url" in body


def test_a_link_is_refreshed_by_a_job_and_taken_away(client: TestClient, run: str) -> None:
    made = link(client, run)
    path = f"{API}/runs/{run}/trackers/{made['id']}"
    answer = client.post(f"{path}/refresh")
    assert answer.status_code == 202
    job = answer.json()
    assert (job["kind"], job["state"], job["project"]) == ("tracker.refresh", "waiting", "p")
    assert client.post(f"{path}/refresh").json()["id"] == job["id"]
    assert client.get(f"{API}/jobs/{job['id']}").json() == job
    assert client.delete(path).status_code == 204
    assert client.get(f"{API}/runs/{run}/trackers").json()["items"] == []
    assert client.delete(path).status_code == 404
    other = link(client, run)
    elsewhere = to_text(1)
    assert client.post(f"{API}/runs/{elsewhere}/trackers/{other['id']}/refresh").status_code == 404


def test_tracking_is_off_until_somebody_switches_it_on(client: TestClient, run: str) -> None:
    path = f"{API}/projects/p/tracking"
    off = {"push_mlflow": False, "push_wandb": False, "best_by": None, "refresh_seconds": 600}
    assert client.get(path).json() == off
    link(client, run)
    changed = client.patch(path, json={"push_mlflow": True, "best_by": "gsm8k"})
    assert changed.json() == off | {"push_mlflow": True, "best_by": "gsm8k"}
    jobs = client.get(f"{API}/jobs", params={"kind": "tracker.push"}).json()["items"]
    assert len(jobs) == 1
    assert client.patch(path, json={"best_by": None}).json() == off | {"push_mlflow": True}
    assert client.patch(path, json={"refresh_seconds": 1}).status_code == 422
    assert client.patch(path, json={"push": True}).status_code == 422


def test_an_import_is_one_job_however_often_it_is_asked_for(database: Database, tmp_path: Path, run: str) -> None:
    body = {"kind": "mlflow", "project": "p", "uri": "http://jane:s3cret@mlflow.example.org", "experiment": "e"}
    with client_of(database, tmp_path, tracker_hosts=("mlflow.example.org",)) as client:
        _ask_for_one(client, body)


def test_a_host_that_nobody_listed_is_refused_at_once_with_the_way_to_list_it(client: TestClient, run: str) -> None:
    body = {"kind": "mlflow", "project": "p", "uri": "http://jane:s3cret@10.0.0.7:5000/x", "experiment": "e"}
    answer = client.post(f"{API}/imports/tracker", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (422, "/problems/tracker-host-not-listed")
    assert [each["pointer"] for each in problem["errors"]] == ["/uri"]
    assert "adds 10.0.0.7 to that list" in problem["detail"]
    assert "s3cret" not in answer.text
    assert client.get(f"{API}/jobs").json()["items"] == []


def _ask_for_one(client: TestClient, body: dict[str, str]) -> None:
    first = client.post(f"{API}/imports/tracker", json=body)
    assert first.status_code == 202
    assert first.json()["arguments"] == {
        "kind": "mlflow",
        "uri": "http://mlflow.example.org",
        "entity": None,
        "project": "e",
    }
    assert client.post(f"{API}/imports/tracker", json=body).json()["id"] == first.json()["id"]
    missing = client.post(f"{API}/imports/tracker", json={"kind": "wandb", "project": "p"})
    assert missing.status_code == 422
    assert client.post(f"{API}/imports/tracker", json=body | {"project": "none"}).status_code == 404


def test_jobs_are_listed_by_pages_filtered_and_cancelled(client: TestClient, run: str) -> None:
    for number in range(5):
        body = {"kind": "mlflow", "project": "p", "experiment": f"e{number}"}
        client.post(f"{API}/imports/tracker", json=body)
    page = client.get(f"{API}/jobs", params={"limit": 3, "project": "p"}).json()
    rest = client.get(f"{API}/jobs", params={"limit": 3, "project": "p", "cursor": page["next_cursor"]}).json()
    assert [len(page["items"]), len(rest["items"]), rest["next_cursor"]] == [3, 2, None]
    job = page["items"][0]["id"]
    assert client.post(f"{API}/jobs/{job}/cancel").json()["state"] == "cancelled"
    again = client.post(f"{API}/jobs/{job}/cancel")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/job-ended")
    cancelled = client.get(f"{API}/jobs", params={"state": "cancelled"}).json()["items"]
    assert [each["id"] for each in cancelled] == [job]
    assert client.get(f"{API}/jobs", params={"state": "odd"}).status_code == 422
    assert client.get(f"{API}/jobs/none").status_code == 404
    assert client.get(f"{API}/workers").json() == {"items": [], "next_cursor": None}


def test_who_may_only_read_changes_nothing(database: Database, tmp_path: Path, run: str) -> None:
    with client_of(database, tmp_path, Scope.READ) as reader:
        assert reader.get(f"{API}/runs/{run}/trackers").status_code == 200
        assert reader.get(f"{API}/jobs").status_code == 200
        assert reader.post(f"{API}/runs/{run}/trackers", json={"url": URL}).status_code == 403
        assert reader.patch(f"{API}/projects/p/tracking", json={"push_mlflow": True}).status_code == 403
        body = {"kind": "mlflow", "project": "p", "experiment": "e"}
        assert reader.post(f"{API}/imports/tracker", json=body).status_code == 403


def test_a_token_of_another_project_sees_neither_links_nor_jobs(
    client: TestClient, database: Database, session: Session, run: str
) -> None:
    made = link(client, run)
    (job,) = client.get(f"{API}/jobs").json()["items"]
    other = make_project(session, "other")
    token = issue_token(session, "bound", Scope.ADMIN, project_ids=[other.id], actor="test")
    session.flush()
    bound = {"Authorization": f"Bearer {token}"}
    for method, path in (
        ("GET", f"/runs/{run}/trackers"),
        ("POST", f"/runs/{run}/trackers"),
        ("DELETE", f"/runs/{run}/trackers/{made['id']}"),
        ("POST", f"/runs/{run}/trackers/{made['id']}/refresh"),
        ("GET", f"/jobs/{job['id']}"),
        ("POST", f"/jobs/{job['id']}/cancel"),
        ("GET", "/projects/p/tracking"),
    ):
        body = {"url": URL} if path.endswith("/trackers") and method == "POST" else None
        assert client.request(method, API + path, headers=bound, json=body).status_code == 403, (method, path)
    assert client.get(f"{API}/jobs", headers=bound).json()["items"] == []


def test_nothing_is_told_without_a_token(client: TestClient, run: str) -> None:
    for path in (f"/runs/{run}/trackers", "/jobs", "/workers", "/projects/p/tracking"):
        assert client.get(API + path, headers={"Authorization": ""}).status_code == 401
