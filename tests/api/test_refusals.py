"""A refused request says where and what, and leaves one line in the log that says who, and never a secret."""

import json
import logging
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from registry.db import Database
from tests.api.conftest import client_of


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "cairn.api"]


def test_a_refusal_is_one_line_with_status_code_path_and_token_name(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "cairn.api")
    client.get("/api/v1/runs/nope?name=secret")
    client.post("/api/v1/projects", json={"name": "a b"})
    client.get("/api/v1/line%0Abreak")
    client.get("/api/v1/runs?limit=1")
    assert lines(caplog) == [
        "refused 422 invalid-fields: GET /api/v1/runs/nope, token 'test-admin', from testclient",
        "refused 422 invalid-fields: POST /api/v1/projects, token 'test-admin', from testclient",
        "refused 404 not-found: GET /api/v1/line%0Abreak, from testclient",
    ]


def test_a_token_that_nobody_knows_is_refused_without_being_written_down(
    client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    client.get("/api/v1/runs", headers={"Authorization": "Bearer cairn_wrong"})
    assert lines(caplog) == ["refused 401 unauthenticated: GET /api/v1/runs, from testclient"]
    assert "cairn_wrong" not in caplog.text


def test_a_body_that_is_too_large_is_in_the_log_too(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "cairn.api")
    with client_of(database, tmp_path, max_body_bytes=100) as client:
        assert client.post("/api/v1/projects", content=b" " * 200).status_code == 413
    assert lines(caplog) == ["refused 413 body-too-large: POST /api/v1/projects, from testclient"]


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/projects", "GET, POST"), ("/checkpoints/0", "GET, PATCH"), ("/watches", "GET, POST")],
)
def test_a_wrong_method_names_every_one_that_the_path_has(client: TestClient, path: str, methods: str) -> None:
    refused = client.delete(f"/api/v1{path}")
    assert (refused.status_code, refused.headers["allow"]) == (405, methods)
    assert methods in refused.json()["detail"]


def test_what_is_not_there_is_named(client: TestClient) -> None:
    assert client.get("/api/v1/nothing").json()["detail"] == "Nothing is at /api/v1/nothing."


def test_a_parameter_that_is_given_twice_is_refused_where_one_counts(client: TestClient) -> None:
    refused = client.get("/api/v1/checkpoints", params={"filter": ["step > 5", "step > 1"]})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/filter")
    client.post("/api/v1/projects", json={"name": "p"})
    run = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    several = client.get(f"/api/v1/runs/{run}/series", params={"name": ["loss", "lr"]})
    assert several.status_code == 200


def test_a_field_of_a_form_is_pointed_at_like_one_of_a_json_body(client: TestClient) -> None:
    files = {"file": ("a.json", b"{}", "application/json")}
    refused = client.post("/api/v1/imports", files=files, data={"project": "p", "run": "r", "step": "x"})
    assert refused.json()["errors"][0]["pointer"] == "/step"


def test_each_line_of_a_batch_that_is_no_json_is_named_by_its_number(client: TestClient) -> None:
    good = json.dumps({"project": "p", "run": "r", "step": 1})
    body = "\n".join([good, "", '{"step":', '{"step": 1, "step": 2}', good])
    refused = client.post("/api/v1/checkpoints:batch", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert refused.status_code == 400
    assert refused.json()["errors"] == [
        {"pointer": "/1", "detail": "line 3, column 9: expecting value"},
        {"pointer": "/2/step", "detail": "line 4, this key occurs twice in its object"},
    ]
    assert client.get("/api/v1/projects").json()["items"] == []


def test_the_first_that_a_refused_batch_tells_of_is_the_first_of_its_items(client: TestClient) -> None:
    item = {"project": "p", "run": "r", "step": 1}
    client.post("/api/v1/checkpoints:batch", json=[item])
    refused = client.post("/api/v1/checkpoints:batch", json=[{**item, "loss": 1.0}, {**item, "attempt": 7}])
    assert [each["pointer"] for each in refused.json()["errors"]] == ["/0/loss", "/1/attempt"]
    assert "differs in: loss" in refused.json()["detail"]


def test_a_number_that_must_be_finite_is_not_said_to_be_allowed_to_be_nan(client: TestClient) -> None:
    client.post("/api/v1/checkpoints:batch", json=[{"project": "p", "run": "r", "step": 1}])
    made = client.get("/api/v1/checkpoints").json()["items"][0]["id"]
    body = [{"benchmark": "gsm8k", "value": 0.5, "stderr": "N/A"}]
    refused = client.post(f"/api/v1/checkpoints/{made}/scores", json=body).json()
    assert refused["errors"] == [{"pointer": "/0/stderr", "detail": "expected a finite number; got 'N/A'"}]
