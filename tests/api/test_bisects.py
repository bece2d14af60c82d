"""Bisects over HTTP: from the question to the gap, with scores posted and imported."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.db import Database
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.tokens import issue_token
from registry.types import Scope
from tests.api.conftest import client_of
from tests.factories import make_checkpoint, make_project, make_run


def path_of(session: Session, count: int = 9) -> list[str]:
    run = make_run(session)
    ends = {0: 0.60, count - 1: 0.50}
    return [
        to_text(
            make_checkpoint(
                session,
                run,
                place * 100,
                replica=f"/shared/{place}",
                scores=[NewScore("mmlu", ends[place], metric="acc", n_samples=14042)] if place in ends else (),
            )
        )
        for place in range(count)
    ]


def start(client: TestClient, path: list[str], **known: Any) -> Any:
    body = {"good": path[0], "bad": path[-1], "benchmark": "mmlu", **known}
    return client.post("/api/v1/bisects", json=body)


def test_scores_lead_to_the_gap(client: TestClient, session: Session) -> None:
    path = path_of(session)
    answer = start(client, path)
    assert answer.status_code == 201, answer.text
    found = answer.json()
    assert {"id", "next", "posterior", "done"} <= found.keys()
    assert (found["next"]["checkpoint"]["id"], found["next"]["items"]) == (path[4], 240)
    while found["next"]:
        step = found["next"]["checkpoint"]["step"]
        body = {
            "checkpoint": found["next"]["checkpoint"]["id"],
            "value": 0.6 if step <= 500 else 0.5,
            "n_samples": found["next"]["items"],
        }
        answer = client.post(f"/api/v1/bisects/{found['id']}/observations", json=body)
        assert answer.status_code == 200, answer.text
        found = answer.json()
    assert found["done"]
    assert (found["gap"]["after"]["step"], found["gap"]["before"]["step"]) == (500, 600)
    assert found["gap"]["probability"] >= 0.95
    assert client.get(f"/api/v1/bisects/{found['id']}").json() == found


def test_the_same_question_again_is_the_same_search(client: TestClient, session: Session) -> None:
    path = path_of(session)
    first, again = start(client, path), start(client, path)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["id"] == again.json()["id"]


def test_an_imported_score_counts_by_itself(client: TestClient, session: Session) -> None:
    path = path_of(session)
    found = start(client, path).json()
    line = {"benchmark": "mmlu", "metric": "acc", "value": 0.6, "n_samples": 14042}
    sent = client.post(
        "/api/v1/imports",
        data={"checkpoint_id": path[4]},
        files={"file": ("mmlu.jsonl", json.dumps(line).encode() + b"\n")},
    )
    assert sent.status_code == 200, sent.text
    now = client.get(f"/api/v1/bisects/{found['id']}").json()
    assert [(each["checkpoint"]["id"], each["source"]) for each in now["evaluations"]] == [(path[4], "recorded")]
    assert now["next"]["checkpoint"]["step"] > 400


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"benchmark": None}, 422, "invalid-fields"),
        ({"capability": "math"}, 422, "invalid-fields"),
        ({"benchmark": "gsm8k"}, 422, "bisect-nothing-fell"),
        ({"benchmark": None, "capability": "mth"}, 422, "bisect-unknown-capability"),
        ({"drop": 0}, 422, "invalid-fields"),
        ({"unknown": 1}, 422, "invalid-fields"),
        ({"good": "0000000000001"}, 404, "checkpoint-not-found"),
    ],
)
def test_a_question_that_cannot_be_searched_is_refused(
    client: TestClient, session: Session, change: dict[str, Any], status: int, code: str
) -> None:
    path = path_of(session, 3)
    body = {key: value for key, value in {"benchmark": "mmlu", **change}.items() if value is not None}
    answer = client.post("/api/v1/bisects", json={"good": path[0], "bad": path[-1]} | body)
    assert (answer.status_code, answer.json()["type"]) == (status, f"/problems/{code}")


@pytest.mark.parametrize("value", ["NaN", "Infinity", True, "0.5", None])
def test_a_score_that_is_no_finite_number_is_refused(client: TestClient, session: Session, value: Any) -> None:
    path = path_of(session, 3)
    found = start(client, path).json()
    answer = client.post(f"/api/v1/bisects/{found['id']}/observations", json={"checkpoint": path[1], "value": value})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/value"


@pytest.mark.parametrize("value", [55, -0.1, 1.001])
def test_a_score_of_another_scale_is_refused_in_words(client: TestClient, session: Session, value: float) -> None:
    path = path_of(session, 3)
    found = start(client, path).json()
    answer = client.post(f"/api/v1/bisects/{found['id']}/observations", json={"checkpoint": path[1], "value": value})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bisect-off-scale")
    assert answer.json()["errors"] == [
        {"pointer": "/value", "detail": f"{value:g} lies outside the fraction scale (0 to 1)"}
    ]
    assert client.get(f"/api/v1/bisects/{found['id']}").json() == found


def test_an_imported_score_of_another_scale_is_left_out_and_named(client: TestClient, session: Session) -> None:
    path = path_of(session)
    found = start(client, path).json()
    score = [{"benchmark": "mmlu", "metric": "acc", "value": 60.0, "n_samples": 14042}]
    assert client.post(f"/api/v1/checkpoints/{path[4]}/scores", json=score).status_code == 200
    now = client.get(f"/api/v1/bisects/{found['id']}").json()
    assert (now["evaluations"], now["next"]) == ([], found["next"])
    assert [(each["checkpoint"]["id"], each["value"]) for each in now["skipped"]] == [(path[4], 60.0)]
    assert "1 score was left out: 60 lies outside the fraction scale" in now["why"]


def test_checkpoints_of_two_projects_have_no_way(client: TestClient, session: Session) -> None:
    one, two = path_of(session, 2), path_of(session, 2)
    answer = start(client, [one[0], two[1]])
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bisect-two-projects")


def test_a_token_of_another_project_sees_nothing(database: Database, session: Session, tmp_path: Path) -> None:
    path = path_of(session, 3)
    with client_of(database, tmp_path) as client:
        found = start(client, path).json()
        token = issue_token(session, "bound", Scope.WRITE, project_ids=[make_project(session).id], actor="test")
        session.flush()
        client.headers["Authorization"] = f"Bearer {token}"
        assert client.get(f"/api/v1/bisects/{found['id']}").status_code == 403
        assert start(client, path).status_code == 403
        observation = {"checkpoint": path[1], "value": 0.5}
        assert client.post(f"/api/v1/bisects/{found['id']}/observations", json=observation).status_code == 403


def test_reading_needs_no_right_to_write(database: Database, session: Session, tmp_path: Path) -> None:
    path = path_of(session, 3)
    with client_of(database, tmp_path) as client:
        found = start(client, path).json()
    with client_of(database, tmp_path, Scope.READ) as reader:
        assert reader.get(f"/api/v1/bisects/{found['id']}").status_code == 200
        assert start(reader, path).status_code == 403
        assert reader.get("/api/v1/bisects/0000000000001").status_code == 404
