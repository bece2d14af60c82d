"""The OpenAPI description against the application itself, and against the names that others build on."""

import contextlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from starlette.testclient import TestClient

from api import problems
from api.main import create_app
from api.room import PREFIX, DescribedRoute
from registry.config import Settings
from registry.db import Database
from registry.errors import (
    Conflict,
    FieldError,
    Forbidden,
    Invalid,
    NotFound,
    RegistryError,
    Unavailable,
    every_leaf,
)
from registry.filters.errors import InvalidFilter
from registry.watches.look import look_at_due
from tests.api.conftest import client_of
from tests.databases import BACKENDS, fresh_database, rolled_back

APP = create_app(Settings(Path(), "sqlite:///never-opened.db"))
DESCRIPTION = APP.openapi()
OPERATIONS = [
    (method.upper(), path) for path, methods in DESCRIPTION["paths"].items() for method in methods if method != "head"
]
Case = schemathesis.Case[Any]
World = tuple[TestClient, dict[str, Any]]  # a client, and what its database knows
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]

EXAMPLES = {GenerationMode.POSITIVE: 12, GenerationMode.NEGATIVE: 6}

# Calls of the service that others build on; each must be described.
CALLS = """
POST /projects
POST /runs
POST /runs/{id}/attempts
PATCH /runs/{id}/attempts/{number}
POST /runs/{id}/checkpoints
POST /checkpoints:batch
POST /checkpoints/{id}/commit
PATCH /checkpoints/{id}
POST /checkpoints/{id}/scores
POST /runs/{id}/series
POST /imports
GET /checkpoints
GET /checkpoints/{id}
GET /checkpoints/{id}/profile
GET /checkpoints/{id}/lineage
GET /checkpoints/{id}/restore-plan
POST /search
POST /rollback
POST /incidents
GET /incidents
GET /incidents/{id}
PATCH /incidents/{id}
POST /resume-receipts
POST /compare
POST /bisects
GET /bisects/{id}
POST /bisects/{id}/observations
GET /checkpoints/{id}/provenance
POST /suspects
POST /decisions
GET /decisions
GET /decisions/{id}
PUT /aliases/{project}/{name}
GET /aliases/{project}/{name}/history
POST /aliases/{project}/{name}/rollback
"""


LEAVES = [leaf for leaf in every_leaf() if leaf.__module__.partition(".")[0] in ("api", "registry")]
KINDS = (Conflict, Forbidden, Invalid, NotFound, Unavailable)


@pytest.fixture(scope="module")
def world(worker_database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client, over a database with something of everything; all requests of this file write into it."""
    with rolled_back(worker_database) as database, client_of(database, tmp_path_factory.mktemp("home")) as client:
        yield client


@pytest.fixture(scope="module")
def known(world: TestClient) -> dict[str, Any]:
    return something_of_everything(world)


@pytest.fixture(scope="module")
def worlds(postgresql_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[World]]:
    """Both systems at once: to make up a request takes ten times as long as to answer it."""
    with contextlib.ExitStack() as stack:
        found = []
        for backend in BACKENDS:
            home = tmp_path_factory.mktemp(backend)
            database = stack.enter_context(fresh_database(backend, home, postgresql_url))
            client = stack.enter_context(client_of(database, home))
            found.append((client, something_of_everything(client)))
        yield found


def _drill(checkpoint: str) -> dict[str, Any]:
    times = {"started_at": "2026-11-01T00:00:00Z", "ended_at": "2026-11-01T00:01:00Z"}
    return {"checkpoint_id": checkpoint, "key": "d", "host": "h", "verdict": "passed", "losses": [2.0], **times}


def something_of_everything(world: TestClient) -> dict[str, Any]:
    """What to say where a parameter or a field of this name is asked for, so that requests meet something."""
    world.post("/api/v1/projects", json={"name": "p"})
    run = world.post("/api/v1/runs", json={"project": "p", "name": "r", "config": {"lr": 1e-4}}).json()["id"]
    world.post(f"/api/v1/runs/{run}/attempts", json={"key": "k"})
    at = f"/api/v1/runs/{run}/checkpoints"
    full = {
        "loss": "NaN",
        "metrics": {"grad_norm": "Infinity"},
        "scores": [{"benchmark": "gsm8k", "metric": "acc,none", "value": 0.5, "stderr": 0.01, "n_samples": 1319}],
        "data_version": {"name": "mix", "mix": {"web": 0.7, "code": {"weight": 0.3, "tokens": 10}}},
        "code": {"commit": "abc", "dirty": True},
        "layout": {"world_size": 8, "tp": 2, "extra": {"a": 1}},
        "replicas": [{"uri": "/mnt/a", "tier": "shared", "bytes": 5, "digest": {"algorithm": "sha256", "value": "0"}}],
        "pieces": {"weights": "present", "data_position": {"state": "present", "position_evidence": "counter"}},
    }
    first = world.post(at, json={"step": 1, **full}).json()["id"]
    second = world.post(at, json={"step": 2, **full, "loss": 2.5}).json()["id"]
    pending = world.post(at, json={"step": 3, "state": "pending"}).json()["id"]
    world.post(f"/api/v1/runs/{run}/series", json=[{"name": "loss", "steps": [1, 2], "values": [2, "NaN"]}])
    moved = world.put(
        "/api/v1/aliases/p/production", json={"checkpoint_id": first, "force": True, "reason": "its loss is NaN"}
    )
    assert moved.status_code == 200
    world.put("/api/v1/aliases/p/production", json={"checkpoint_id": second})
    good, bad = (
        world.post(
            at,
            json={"step": step, "scores": [{"benchmark": "mmlu", "metric": "acc", "value": value, "n_samples": 9000}]},
        )
        for step, value in ((20, 0.6), (30, 0.5))
    )
    ends = {"good": good.json()["id"], "bad": bad.json()["id"]}
    started = world.post("/api/v1/bisects", json={**ends, "benchmark": "mmlu"})
    assert started.status_code == 201, started.text
    bisect = started.json()["id"]
    asked = {"kind": "compare", "request": {"baseline": ends["good"], "candidate": ends["bad"]}}
    decision = world.post("/api/v1/decisions", json=asked).json()["id"]
    (copy,) = world.get(f"/api/v1/checkpoints/{first}").json()["replicas"]
    incident = world.post("/api/v1/incidents", json={"run_id": run, "checkpoint_id": first}).json()["id"]
    watch = world.post("/api/v1/watches", json={"run_id": run, "kind": "loss"}).json()["id"]
    look_at_due(world.app.state.database)  # type: ignore[attr-defined]
    finding = world.get("/api/v1/findings").json()["items"][0]["id"]
    linked = {"kind": "mlflow", "uri": "http://127.0.0.1:9", "run_id": "abc"}
    link = world.post(f"/api/v1/runs/{run}/trackers", json=linked).json()["id"]
    job = world.post(f"/api/v1/runs/{run}/trackers/{link}/refresh", json={}).json()["id"]
    return {
        "run_id": run,
        "link_id": link,
        "job_id": job,
        "bisect_id": bisect,
        "drill_id": world.post("/api/v1/drills", json=_drill(first)).json()["id"],
        "decision_id": decision,
        **ends,
        "watch_id": watch,
        "finding_id": finding,
        "incident_id": incident,
        "replica_id": copy["id"],
        "checkpoint_id": first,
        "pending": pending,
        "baseline": first,
        "candidate": second,
        "expected": first,
        "number": 1,
        "project": "p",
        "run": "r",
        "name": "production",
        "alias": "p/production",
        "resumed_from": first,
    }


@schemathesis.serializer("application/x-ndjson")
def lines(_context: Any, value: Any) -> bytes:
    return str(value).encode("utf-8", "replace")


def send(client: TestClient, case: Case) -> Any:
    """Send a generated request as it would go over the wire."""
    prepared: Any = requests.Request(**case.as_transport_kwargs(base_url="http://testserver")).prepare()
    own = ("authorization", "content-length")  # ours is the valid token; the length is of what is sent
    headers = {name: value for name, value in prepared.headers.items() if name.lower() not in own}
    assume(len(prepared.url) < 60_000)  # longer ones the client itself refuses
    return client.request(prepared.method, prepared.url, content=prepared.body or b"", headers=headers)


def told(value: Any, known: dict[str, Any], choose: Any) -> Any:
    """The value with some of its members replaced by what exists."""
    if isinstance(value, list):
        return [told(item, known, choose) for item in value]
    if not isinstance(value, dict):
        return value
    return {key: known[key] if key in known and choose() else told(item, known, choose) for key, item in value.items()}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: str(part))
def test_every_answer_is_as_described(worlds: list[World], method: str, path: str, mode: GenerationMode) -> None:
    operation = SCHEMA[path][method]

    @settings(
        max_examples=EXAMPLES[mode],
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode), seed=st.integers(0, 2**32))
    def check(case: Case, seed: int) -> None:
        made_path, made_body = case.path_parameters, case.body
        for client, known in worlds:
            if mode is GenerationMode.POSITIVE:
                chance = random.Random(seed)
                case.path_parameters = told(made_path, known, lambda: True)
                case.body = told(made_body, known, lambda chance=chance: chance.random() < 0.5)
            case.validate_response(send(client, case), checks=CHECKS)

    check()


def test_valid_requests_reach_what_is_there(world: TestClient, known: dict[str, Any]) -> None:
    """Without this, a test of generated requests could pass on 401 and 404 alone."""
    for path in ("/checkpoints/{checkpoint_id}", "/runs/{run_id}/series", "/aliases/{project}/{name}/history"):
        assert world.get("/api/v1" + path.format(**known)).status_code == 200
    both = {"baseline": known["baseline"], "candidate": known["candidate"]}
    assert world.post("/api/v1/compare", json=both).status_code == 200


@pytest.mark.parametrize("call", CALLS.split("\n")[1:-1])
def test_every_call_that_others_build_on_is_described(call: str) -> None:
    method, path = call.split()

    def shape(text: str) -> str:
        return re.sub(r"\{[^}]*\}", "{}", text)

    described = {(each, shape(known)) for each, known in OPERATIONS}
    assert (method, shape(f"/api/v1{path}")) in described


def test_every_body_and_every_answer_is_described() -> None:
    for method, path in OPERATIONS:
        operation = DESCRIPTION["paths"][path][method.lower()]
        assert operation["description"], path
        assert operation["security"] == [{"token": []}], path
        bodiless = path.endswith(("/refresh", "/cancel", "/gone"))  # what they do, their path says
        assert ("requestBody" in operation) == (method in ("PATCH", "POST", "PUT") and not bodiless), path
        for status, answer in operation["responses"].items():
            shapes = [each["schema"] for each in answer.get("content", {}).values()]
            assert status == "204" or (shapes and all(shapes)), (path, status)


def test_every_route_of_the_api_is_made_in_a_room_and_names_its_answer() -> None:
    """`room()` asks for the token and hands the model to the description; without either a route would look right."""
    ours = [each for each in APP.routes if isinstance(each, APIRoute) and each.path.startswith(PREFIX)]
    assert [each.path for each in ours if not isinstance(each, DescribedRoute)] == [f"{PREFIX}/openapi.json"]
    described = [each for each in ours if isinstance(each, DescribedRoute)]
    assert len(described) == len(OPERATIONS)
    nameless = [each.path for each in described if not each.answers and each.status_code != 204]
    assert nameless == []


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=lambda part: str(part))
def test_every_operation_needs_a_token(world: TestClient, known: dict[str, Any], method: str, path: str) -> None:
    for header in (None, "", "Bearer", "Bearer wrong", "Basic YTpi", world.headers["authorization"] + "x"):
        headers = {"Authorization": "" if header is None else header}
        answer = world.request(method, path.format(**known), content=b"{", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_every_error_has_a_code_a_title_and_a_status(leaf: type[RegistryError]) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", leaf.code)
    assert leaf.title
    assert leaf.title[0].isupper()
    assert not leaf.title.endswith(".")
    assert 400 <= problems.status_of(leaf) < 500 or issubclass(leaf, Unavailable)
    own = vars(leaf)
    assert "code" in own, "a leaf that only inherits its code cannot be told from its parent"
    assert "title" in own


def test_no_two_errors_share_a_code() -> None:
    codes = [leaf.code for leaf in LEAVES]
    assert len(codes) > 30
    assert sorted(codes) == sorted(set(codes))


def test_kinds_decide_statuses() -> None:
    assert [problems.status_of(kind) for kind in KINDS] == [409, 403, 422, 404, 503]


@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: leaf.__name__)
def test_every_problem_document_has_the_members_of_rfc_9457(leaf: type[RegistryError]) -> None:
    place = {"text": "step >", "position": 6} if issubclass(leaf, InvalidFilter) else {}
    error = leaf("Run 'a' is away. Try b.", errors=[FieldError("/a/0", "expected b")], run_id="0", **place)
    answer = problems.problem_response(error)
    assert answer.headers["content-type"] == "application/problem+json"
    assert ("retry-after" in answer.headers) == (answer.status_code == 503)
    body = json.loads(bytes(answer.body))
    assert (body["type"], body["title"], body["status"]) == (f"/problems/{leaf.code}", leaf.title, answer.status_code)
    assert "Run 'a' is away. Try b." in body["detail"]
    assert {"pointer": "/a/0", "detail": "expected b"} in body["errors"]
    assert body["run_id"] == "0"


def test_what_is_under_no_route_is_a_problem_too(world: TestClient) -> None:
    missing = world.get("/api/v1/nothing")
    assert (missing.status_code, missing.json()["type"]) == (404, "/problems/not-found")
    wrong = world.delete("/api/v1/projects")
    assert (wrong.status_code, wrong.json()["type"]) == (405, "/problems/method-not-allowed")
    assert wrong.headers["content-type"] == "application/problem+json"
