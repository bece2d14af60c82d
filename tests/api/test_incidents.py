"""The fault ledger over HTTP: status codes, shapes, whose it is, bad bodies."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.attempts import amend_attempt
from registry.db import Database, now
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.types import Scope
from tests.api.conftest import client_of
from tests.factories import make_attempt, make_checkpoint, make_project, make_run
from tests.registry.incidents.steps import beats, look

URL = "/api/v1/incidents"


@pytest.fixture
def run_id(session: Session) -> str:
    run = make_run(session, make_project(session, "p"), "r")
    make_attempt(session, run, key="a")
    return to_text(run.id)


def test_an_incident_is_made_once_by_its_key_and_read_back_whole(client: TestClient, run_id: str) -> None:
    body = {
        "run_id": run_id,
        "attempt": 1,
        "kind": "crashed",
        "cause": "gpu-ecc",
        "evidence": ["NVRM: Xid (PCI:0000:0f:00): 48"],
        "occurred_at": "2026-11-28T10:00:00Z",
        "exit_code": 134,
        "signal": "SIGABRT",
        "node": "n7",
        "hardware": "8x H100",
        "log_excerpt": "last\nlines\x1b[0m",
        "step": 1240,
        "note": "second time",
        "key": "exec-1",
    }
    made = client.post(URL, json=body)
    assert made.status_code == 201, made.text
    again = client.post(URL, json=body)
    assert (again.status_code, again.json()) == (200, made.json())
    read = client.get(f"{URL}/{made.json()['id']}").json()
    assert read == made.json()
    assert (read["project"], read["run"], read["state"]) == ("p", {"id": run_id, "name": "r"}, "open")
    assert (read["cause_title"], read["planned"], read["cause_said_by"]) == ("GPU memory error (ECC)", False, None)
    assert (read["steps_lost"], read["steps_lost_by"], read["log_excerpt"]) == (1240, "steps", "last\nlines\x1b[0m")
    (listed,) = client.get(URL, params={"project": "p", "open": "true", "cause": "gpu-ecc"}).json()["items"]
    assert "log_excerpt" not in listed
    assert listed["id"] == read["id"]


def test_the_run_may_be_named_and_the_newest_attempt_is_meant(client: TestClient, run_id: str) -> None:
    assert client.post(URL, json={"project": "p", "run": "r"}).json()["attempt"] == 1
    assert client.post(URL, json={"project": "p", "run": "r", "attempt": None}).json()["attempt"] is None
    assert client.post(URL, json={"project": "p", "run": "r", "attempt_key": "a"}).json()["attempt"] == 1
    assert client.post(URL, json={"project": "p", "run": "none"}).status_code == 404


def test_a_patch_names_the_cause_and_closes_and_opens(client: TestClient, run_id: str) -> None:
    path = f"{URL}/{client.post(URL, json={'run_id': run_id}).json()['id']}"
    said = client.patch(path, json={"cause": "power", "node": "n1", "open": False}).json()
    assert (said["cause"], said["cause_said_by"], said["state"], said["node"]) == (
        "power",
        "test-admin",
        "closed",
        "n1",
    )
    assert client.patch(path, json={"open": True}).json()["closed_at"] is None
    assert client.patch(path, json={"closed_at": "2026-11-28T11:00:00Z"}).json()["closed_at"] == "2026-11-28T11:00:00Z"
    assert client.patch(path, json={}).json()["cause"] == "power"
    assert client.patch(path, json={"cause": None}).json()["cause"] == "unknown"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"project": "p"},
        {"run_id": "0" * 13, "project": "p", "run": "r"},
        {"project": "p", "run": "r", "attempt": 1, "attempt_key": "a"},
        {"project": "p", "run": "r", "cause": "No Cause"},
        {"project": "p", "run": "r", "cause": "x" * 65},
        {"project": "p", "run": "r", "kind": "odd"},
        {"project": "p", "run": "r", "signal": "kill -9"},
        {"project": "p", "run": "r", "exit_code": True},
        {"project": "p", "run": "r", "steps_lost": -1},
        {"project": "p", "run": "r", "log_excerpt": "a\0b"},
        {"project": "p", "run": "r", "log_excerpt": "x" * 65_537},
        {"project": "p", "run": "r", "occurred_at": "2026-11-28T10:00:00"},
        {"project": "p", "run": "r", "evidence": ["x"] * 21},
        {"project": "p", "run": "r", "attempt": 99},
        {"project": "p", "run": "r", "unknown": 1},
    ],
    ids=str,
)
def test_a_bad_incident_is_refused(client: TestClient, run_id: str, body: dict[str, Any]) -> None:
    answer = client.post(URL, json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"]


@pytest.mark.parametrize(
    "body", [{"open": None}, {"open": True, "closed_at": None}, {"kind": "lost"}, {"note": 5}], ids=str
)
def test_a_bad_patch_is_refused(client: TestClient, run_id: str, body: dict[str, Any]) -> None:
    path = f"{URL}/{client.post(URL, json={'run_id': run_id}).json()['id']}"
    assert client.patch(path, json=body).status_code == 422


def test_what_is_not_there_is_not_found(client: TestClient) -> None:
    for path in (f"{URL}/nothing", f"{URL}/0000000000000", "/api/v1/runs/0000000000000/resume-receipts"):
        assert client.get(path).status_code == 404
    assert client.get(URL, params={"run_id": "0000000000000"}).status_code == 404
    assert client.get(URL, params={"odd": "1"}).status_code == 422


def test_pages_follow_each_other_and_a_cursor_keeps_to_its_question(client: TestClient, run_id: str) -> None:
    made = [client.post(URL, json={"run_id": run_id, "occurred_at": f"2026-11-2{day}T00:00:00Z"}) for day in range(5)]
    first = client.get(URL, params={"limit": 2}).json()
    second = client.get(URL, params={"limit": 3, "cursor": first["next_cursor"]}).json()
    seen = [each["id"] for each in first["items"] + second["items"]]
    assert seen == [each.json()["id"] for each in reversed(made)]
    assert second["next_cursor"] is None
    assert client.get(URL, params={"open": "true", "cursor": first["next_cursor"]}).status_code == 400


def test_a_bound_or_a_reading_token_keeps_to_what_it_may(database: Database, session: Session, tmp_path: Path) -> None:
    run = make_run(session, make_project(session, "theirs"))
    other = make_project(session, "ours")
    with client_of(database, tmp_path) as admin:
        made = admin.post(URL, json={"run_id": to_text(run.id)}).json()["id"]
    with client_of(database, tmp_path, Scope.READ) as reader:
        assert reader.get(f"{URL}/{made}").status_code == 200
        assert reader.post(URL, json={"run_id": to_text(run.id)}).status_code == 403
        assert reader.patch(f"{URL}/{made}", json={}).status_code == 403
    with database.write() as writing:
        from registry.tokens import issue_token

        token = issue_token(writing, "bound", Scope.WRITE, project_ids=[other.id], actor="test")
    with client_of(database, tmp_path, Scope.READ) as bound:
        bound.headers["Authorization"] = f"Bearer {token}"
        assert bound.get(URL).json()["items"] == []
        assert bound.get(f"{URL}/{made}").status_code == 403
        assert bound.patch(f"{URL}/{made}", json={}).status_code == 403
        assert bound.post(URL, json={"project": "theirs", "run": run.name}).status_code == 403
        assert bound.get(URL, params={"run_id": to_text(run.id)}).status_code == 403


def test_a_resumed_attempt_shows_as_unconfirmed_until_its_receipt(client: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "q"), "s")
    loaded = make_checkpoint(session, run, 100)
    attempts = f"/api/v1/runs/{to_text(run.id)}/attempts"
    opened = client.post(attempts, json={"key": "b", "resumed_from": to_text(loaded)}).json()
    assert opened["resume"]["state"] == "unconfirmed"
    pieces = {"weights": "restored", "optimizer": "fresh", "data_position": "restored", "random_state": "restored"}
    body = {"checkpoint_id": to_text(loaded), "attempt": 2, "pieces": pieces, "restore_seconds": 12.5}
    made = client.post("/api/v1/resume-receipts", json=body)
    assert made.status_code == 201, made.text
    assert client.post("/api/v1/resume-receipts", json=body).status_code == 200
    first, second = client.get(attempts).json()["items"]
    assert first["resume"] is None
    assert second["resume"] == {"state": "partial", "pieces": pieces, "restore_seconds": 12.5, "receipts": 1}
    listed = client.get(f"/api/v1/runs/{to_text(run.id)}/resume-receipts").json()["items"]
    assert listed == [made.json()]
    whole = {"attempt": {"run_id": to_text(run.id), "number": 2}, "project": "q", "run": "s", "step": 100}
    assert client.post("/api/v1/resume-receipts", json=whole | {"pieces": pieces}).json()["attempt"] == 2
    by_name = {"checkpoint": {"project": "q", "run": "s", "attempt": 1, "step": 100}, "attempt_key": "b"}
    assert client.post("/api/v1/resume-receipts", json=by_name | {"pieces": {}}).json()["loaded"]["checkpoint_id"] == (
        to_text(loaded)
    )


@pytest.mark.parametrize(
    "body",
    [
        {"pieces": {}},
        {"pieces": {"weights": "loaded"}, "project": "q", "run": "s"},
        {"pieces": {"model": "restored"}, "project": "q", "run": "s"},
        {"pieces": {}, "project": "q"},
        {"pieces": {}, "project": "q", "run": "s", "restore_seconds": -1},
        {"pieces": {}, "checkpoint": {"step": 5}, "checkpoint_id": "0" * 13},
        {"project": "q", "run": "s"},
    ],
    ids=str,
)
def test_a_bad_receipt_is_refused(client: TestClient, session: Session, body: dict[str, Any]) -> None:
    make_attempt(session, make_run(session, make_project(session, "q"), "s"), key="a")
    assert client.post("/api/v1/resume-receipts", json=body).status_code == 422


def test_a_suspect_is_told_with_what_to_load_instead(client: TestClient, session: Session) -> None:
    run = make_run(session)
    older, loaded = make_checkpoint(session, run, 100), make_checkpoint(session, run, 200)
    for _ in range(2):
        attempt = make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=loaded))
        body = {"run_id": to_text(run.id), "attempt": attempt.number, "kind": "crashed", "exit_code": 1}
        answer = client.post(URL, json=body).json()
    assert answer["checkpoint"]["step"] == 200
    assert answer["suspect"]["instead"]["checkpoint_id"] == to_text(older)
    path = f"/api/v1/checkpoints/{to_text(loaded)}/suspicion"
    assert client.get(path).json()["suspect"] is True
    cleared = client.put(path, json={"suspect": False, "reason": "a driver fault"}).json()
    assert cleared == {"suspect": False, "suspicion": None, "copies": []}
    assert client.put(path, json={"suspect": True}).status_code == 422


def test_a_heartbeat_over_http_closes_what_the_service_opened(client: TestClient, session: Session) -> None:
    run = make_run(session)
    attempt = make_attempt(session, run, key="a")
    beats(session, run, attempt, now() - timedelta(hours=1), [1, 2, 3])
    (opened,) = look(session)
    path = f"/api/v1/runs/{to_text(run.id)}/attempts/1"
    beat = (now() + timedelta(seconds=1)).isoformat()
    assert client.patch(path, json={"heartbeat_at": beat, "step": 4}).json()["state"] == "running"
    read = client.get(f"{URL}/{to_text(opened.id)}").json()
    assert read["state"] == "recovered"
    assert read["recovery_seconds"] > 3500
    amend_attempt(session, run.id, 1, {"state": "finished", "ended_at": now()})


def test_a_second_report_of_one_interruption_says_what_of_it_was_not_taken(client: TestClient, run_id: str) -> None:
    body = {"run_id": run_id, "kind": "crashed", "cause": "power", "key": "a"}
    first = client.post(URL, json=body)
    assert (first.status_code, first.json()["not_applied"]) == (201, [])
    again = client.post(URL, json=body | {"key": "b", "cause": "link-flap", "node": "n7"})
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    assert (again.json()["cause"], again.json()["node"], again.json()["not_applied"]) == ("power", "n7", ["cause"])
    assert client.get(f"{URL}/{first.json()['id']}").json()["not_applied"] == []
