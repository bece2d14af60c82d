"""Restoring, resuming and what lies in storage, over HTTP: statuses, shapes, and whose project it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.db import Database
from registry.projects import create_project
from registry.tokens import issue_token
from registry.types import Scope
from tests.api.conftest import client_of

PIECES = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
LAYOUT = {"world_size": 8, "tp": 2, "pp": 1, "dp": 4, "cp": 1, "sharding": "fully_reshardable"}
FILES = [{"path": "a.bin", "bytes": 3, "digest": "00ff"}, {"path": "b.bin", "bytes": 4}]
SHARED = {
    "uri": "/mnt/1000",
    "tier": "shared",
    "bytes": 100_000_000_000,
    "file_count": 2,
    "digest": {"algorithm": "sha256", "value": "ab12"},
    "manifest": FILES,
}
LOCAL = {"uri": "/nvme/1000", "tier": "local", "host": "node1", "bytes": 100_000_000_000}
FACTS = {"layout": LAYOUT, "pieces": PIECES}


@pytest.fixture
def client(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(database, tmp_path) as client:
        yield client


@pytest.fixture
def run_id(client: TestClient) -> str:
    client.post("/api/v1/projects", json={"name": "p"})
    made: str = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    return made


def save(client: TestClient, run_id: str, step: int, **known: Any) -> str:
    body = {"step": step, "replicas": [{**SHARED, "uri": f"/mnt/{step}"}], **FACTS, **known}
    answer = client.post(f"/api/v1/runs/{run_id}/checkpoints", json=body)
    assert answer.status_code == 201, answer.text
    made: str = answer.json()["id"]
    return made


def test_a_restore_plan_says_where_how_long_and_what(client: TestClient, run_id: str) -> None:
    number = save(client, run_id, 1000, replicas=[SHARED, LOCAL])
    asked = {"layout": "world_size=4", "rto_seconds": 600, "host": ["node1"]}
    answer = client.get(f"/api/v1/checkpoints/{number}/restore-plan", params=asked)
    told = answer.json()
    assert answer.status_code == 200
    assert told["checkpoint"]["id"] == number
    assert told["chosen"]["tier"] == "local"
    assert (told["rto_seconds"], told["obstacle"]) == (600, "")
    assert round(told["chosen"]["seconds"] / 60, 2) == 8.51
    assert sum(told["chosen"]["terms"].values()) == pytest.approx(told["chosen"]["seconds"])
    assert [each["tier"] for each in told["copies"]] == ["local", "shared"]
    assert told["copies"][1]["has_manifest"]
    assert told["compatibility"]["changes"] == [{"degree": "dp", "old": 4, "new": 2}]
    verdicts = {name: fit["verdict"] for name, fit in told["compatibility"]["pieces"].items()}
    assert verdicts == {
        "weights": "exact",
        "optimizer": "exact",
        "data_position": "needs-drill",
        "random_state": "needs-drill",
    }
    assert any("assume" in each for each in told["assumptions"])
    assert "local disk" in told["sentence"]
    alone = client.get(f"/api/v1/checkpoints/{number}/restore-plan").json()
    assert [each["feasible"] for each in alone["copies"]] == [True, False]


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({"layout": "tp=four"}, 422, "bad-layout"),
        ({"layout": "tp=0"}, 422, "bad-layout"),
        ({"layout": "tp=2,tp=2"}, 422, "bad-layout"),
        ({"layout": "zp=2"}, 422, "bad-layout"),
        ({"layout": ""}, 422, "bad-layout"),
        ({"layout": "tp=99999999999999999999"}, 422, "bad-layout"),
        ({"layout": "world_size=7,tp=2"}, 422, "contradictory-layout"),
        ({"rto_seconds": 0}, 422, "invalid"),
        ({"rto_seconds": "NaN"}, 422, "invalid"),
        ({"host": ""}, 422, "invalid"),
        ({"node": "a"}, 422, "invalid"),
    ],
)
def test_bad_questions_name_what_was_expected(
    client: TestClient, run_id: str, asked: dict[str, Any], status: int, code: str
) -> None:
    number = save(client, run_id, 1000)
    answer = client.get(f"/api/v1/checkpoints/{number}/restore-plan", params=asked)
    problem = answer.json()
    assert answer.status_code == status, problem
    assert problem["type"].startswith("/problems/")
    assert code in problem["type"] or code == "invalid"
    assert problem["errors"][0]["detail"]


def test_a_resume_plan_orders_the_newest_first_with_what_was_passed_over(client: TestClient, run_id: str) -> None:
    old = save(client, run_id, 1000)
    new = save(client, run_id, 2000)
    save(client, run_id, 3000, pieces={"weights": "present"})
    answer = client.post(f"/api/v1/runs/{run_id}/resume-plan")
    told = answer.json()
    assert answer.status_code == 200
    assert [each["checkpoint"]["id"] for each in told["candidates"]] == [new, old]
    assert [each["steps_behind"] for each in told["candidates"]] == [1000, 2000]
    assert [(each["checkpoint"]["step"], each["filter"]) for each in told["excluded"]] == [(3000, "pieces")]
    assert told["excluded_counts"] == {"pieces": 1}
    assert (told["run"]["name"], told["project"], told["considered"]) == ("r", "p", 3)
    asked = {"require": [], "limit": 1, "layout": LAYOUT, "hosts": ["a"], "config": {"seed": 1}, "skip": [old]}
    told = client.post(f"/api/v1/runs/{run_id}/resume-plan", json=asked).json()
    assert [each["checkpoint"]["step"] for each in told["candidates"]] == [3000]


@pytest.mark.parametrize(
    "body",
    [
        {"require": ["moments"]},
        {"require": "optimizer"},
        {"limit": 0},
        {"layout": {"tp": 0}},
        {"layout": {"world_size": 7, "tp": 2}},
        {"hosts": [""]},
        {"skip": ["x"]},
        {"rto_seconds": -1},
        {"config": []},
        {"when": "now"},
    ],
)
def test_bad_bodies_of_a_resume_plan_are_refused(client: TestClient, run_id: str, body: dict[str, Any]) -> None:
    save(client, run_id, 1000)
    answer = client.post(f"/api/v1/runs/{run_id}/resume-plan", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"]


def test_hosts_agree_over_http(client: TestClient, run_id: str) -> None:
    old, new = save(client, run_id, 1000), save(client, run_id, 2000)
    at = f"/api/v1/runs/{run_id}/resume-agreements"

    def say(host: str, **known: Any) -> dict[str, Any]:
        answer = client.post(at, json={"key": "job", "host": host, "hosts": 2, **known})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    first = say("a", checkpoint_id=new)
    assert (first["checkpoint"]["id"], first["ready"], first["all_ready"], first["failed"]) == (new, ["a"], False, None)
    second = say("b", checkpoint_id=old, instead_of=new, reason="stale handle")
    assert (second["checkpoint"]["id"], second["refused"], second["ready"]) == (old, [new], ["b"])
    assert say("a", checkpoint_id=old)["all_ready"]
    wrong = client.post(at, json={"key": "job", "host": "a", "hosts": 3, "checkpoint_id": old})
    assert (wrong.status_code, wrong.json()["type"]) == (409, "/problems/resume-agreement-conflict")
    for body in (
        {"host": "a", "hosts": 2},
        {"key": "", "host": "a", "hosts": 2},
        {"key": "k", "host": "a", "hosts": 0},
        {"key": "k", "host": "a", "hosts": 1, "checkpoint_id": old, "instead_of": old},
        {"key": "k", "host": "a", "hosts": 1},
    ):
        assert client.post(at, json=body).status_code == 422, body


def test_storage_usage_and_manifests_are_told(client: TestClient, run_id: str) -> None:
    number = save(client, run_id, 1000)
    told = client.get("/api/v1/storage/usage", params={"project": "p"}).json()
    assert told["bytes"] == SHARED["bytes"]
    (entry,) = told["entries"]
    assert (entry["run"]["id"], entry["tier"], entry["state"], entry["superseded"]) == (
        run_id,
        "shared",
        "committed",
        False,
    )
    assert told["totals"][0]["bytes"] == SHARED["bytes"]
    assert client.get("/api/v1/storage/usage", params={"run_id": run_id, "limit": 1}).json()["left_out"] == 0
    assert client.get("/api/v1/storage/usage", params={"project": "none"}).status_code == 404
    assert client.get("/api/v1/storage/usage", params={"run_id": "none"}).status_code == 404
    (copy,) = client.get(f"/api/v1/checkpoints/{number}").json()["replicas"]
    manifest = client.get(f"/api/v1/replicas/{copy['id']}/manifest").json()
    assert (manifest["algorithm"], manifest["digest"], manifest["uri"]) == ("sha256", "ab12", "/mnt/1000")
    assert manifest["files"] == [FILES[0], {**FILES[1], "digest": None}]
    plain = save(client, run_id, 2000, replicas=[LOCAL])
    (copy,) = client.get(f"/api/v1/checkpoints/{plain}").json()["replicas"]
    missing = client.get(f"/api/v1/replicas/{copy['id']}/manifest")
    assert (missing.status_code, missing.json()["type"]) == (404, "/problems/no-manifest")
    assert client.get(f"/api/v1/replicas/{number}/manifest").json()["type"] == "/problems/replica-not-found"
    assert client.get("/api/v1/replicas/x/manifest").status_code == 404


def test_a_token_of_another_project_sees_none_of_it(
    client: TestClient, run_id: str, database: Database, tmp_path: Path
) -> None:
    number = save(client, run_id, 1000)
    (copy,) = client.get(f"/api/v1/checkpoints/{number}").json()["replicas"]
    with database.write() as session:
        other = create_project(session, "other")[0]
        token = issue_token(session, "bound", Scope.WRITE, actor="test", project_ids=[other.id])
    bound = {"Authorization": f"Bearer {token}"}
    vote = {"key": "k", "host": "h", "hosts": 1, "checkpoint_id": number}
    for method, path, body in (
        ("GET", f"/checkpoints/{number}/restore-plan", None),
        ("POST", f"/runs/{run_id}/resume-plan", {}),
        ("POST", f"/runs/{run_id}/resume-agreements", vote),
        ("GET", f"/replicas/{copy['id']}/manifest", None),
        ("GET", f"/storage/usage?run_id={run_id}", None),
        ("GET", "/storage/usage?project=p", None),
    ):
        answer = client.request(method, f"/api/v1{path}", json=body, headers=bound)
        assert answer.status_code == 403, path
    assert client.get("/api/v1/storage/usage", headers=bound).json()["entries"] == []


def test_reading_is_enough_to_ask_and_writing_is_needed_to_agree(
    client: TestClient, run_id: str, database: Database
) -> None:
    number = save(client, run_id, 1000)
    with database.write() as session:
        token = issue_token(session, "reader", Scope.READ, actor="test")
    reader = {"Authorization": f"Bearer {token}"}
    assert client.post(f"/api/v1/runs/{run_id}/resume-plan", json={}, headers=reader).status_code == 200
    vote = {"key": "k", "host": "h", "hosts": 1, "checkpoint_id": number}
    assert client.post(f"/api/v1/runs/{run_id}/resume-agreements", json=vote, headers=reader).status_code == 403
