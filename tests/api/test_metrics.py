"""`/metrics`: figures of the registry and of the process, as Prometheus reads them."""

from datetime import timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from api.measuring import BOUNDS
from registry.db import Database, now
from registry.ids import to_text
from registry.tokens import issue_token
from registry.types import Scope
from tests.factories import make_attempt, make_project, make_run
from tests.registry.incidents.steps import beat

Figure = dict[tuple[tuple[str, str], ...], float]


def figures(client: TestClient) -> dict[str, Figure]:
    """The values of every sample by its name and labels."""
    answer = client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found: dict[str, Figure] = {}
    for family in text_string_to_metric_families(answer.text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def answered(found: dict[str, Figure], **labels: str) -> float:
    return found.get("cairn_http_request_seconds_count", {}).get(tuple(sorted(labels.items())), 0)


@pytest.mark.parametrize("authorization", ["", "Bearer cairn_no"])
def test_figures_need_a_token(client: TestClient, authorization: str) -> None:
    answer = client.get("/metrics", headers={"Authorization": authorization})
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthenticated")


def test_a_token_that_reads_is_enough_and_one_that_is_bound_is_refused(client: TestClient, database: Database) -> None:
    with database.write() as session:
        project = make_project(session)
        reader = issue_token(session, "prometheus", Scope.READ, actor="test")
        bound = issue_token(session, "bound", Scope.ADMIN, project_ids=[project.id], actor="test")
    assert client.get("/metrics", headers={"Authorization": f"Bearer {reader}"}).status_code == 200
    refused = client.get("/metrics", headers={"Authorization": f"Bearer {bound}"})
    assert (refused.status_code, refused.json()["type"]) == (403, "/problems/project-forbidden")


def test_a_running_attempt_says_its_step_and_how_old_its_signs_of_life_are(
    client: TestClient, database: Database
) -> None:
    with database.write() as session:
        run = make_run(session, make_project(session, "llm"), 'a "quoted" run \\')
        attempt = make_attempt(session, run, key="a")
        beat(session, run, attempt, now() - timedelta(seconds=40), 1200)
    labels = (("attempt", "1"), ("project", "llm"), ("run", 'a "quoted" run \\'))
    found = figures(client)
    assert found["cairn_attempt_step"][labels] == 1200
    assert 40 <= found["cairn_attempt_heartbeat_age_seconds"][labels] < 400
    assert labels not in found.get("cairn_attempt_checkpoint_age_seconds", {}), "nothing is saved yet"
    saved_at = (now() - timedelta(seconds=90)).isoformat().replace("+00:00", "Z")
    body = [{"project": "llm", "run": run.name, "step": step, "saved_at": saved_at} for step in (1000, 1100)]
    assert client.post("/api/v1/checkpoints:batch", json=body).status_code == 200
    assert 90 <= figures(client)["cairn_attempt_checkpoint_age_seconds"][labels] < 400


def test_an_attempt_that_has_ended_is_no_longer_named(client: TestClient, database: Database) -> None:
    with database.write() as session:
        run = make_run(session)
        beat(session, run, make_attempt(session, run, key="a"), now(), 5)
    assert len(figures(client)["cairn_attempt_step"]) == 1
    ended = client.patch(f"/api/v1/runs/{to_text(run.id)}/attempts/1", json={"state": "finished"})
    assert ended.status_code == 200
    assert figures(client).get("cairn_attempt_step", {}) == {}


def test_open_incidents_are_counted_by_kind_and_cause(client: TestClient, database: Database) -> None:
    with database.write() as session:
        run = make_run(session, make_project(session, "llm"))
    body = {"run_id": to_text(run.id), "kind": "reported", "cause": "power"}
    answer = client.post("/api/v1/incidents", json=body)
    assert answer.status_code == 201, answer.text
    found = figures(client)["cairn_incidents_open"]
    assert found[(("cause", "power"), ("kind", "reported"), ("project", "llm"))] == 1


def test_requests_are_counted_by_route_never_by_path(client: TestClient) -> None:
    before = figures(client)
    for name in ("one", "two", "three"):
        assert client.get(f"/api/v1/checkpoints/{name}").status_code == 404
        assert client.get(f"/nowhere/{name}").status_code == 404
    client.request("BREW", "/coffee")
    after = figures(client)
    known = {"method": "GET", "route": "/api/v1/checkpoints/{checkpoint_id}", "status": "404"}
    unknown = {"method": "GET", "route": "none", "status": "404"}
    assert answered(after, **known) - answered(before, **known) == 3
    assert answered(after, **unknown) - answered(before, **unknown) == 3
    routes = {dict(labels)["route"] for labels in after["cairn_http_request_seconds_count"]}
    assert not any("nowhere" in route or "coffee" in route for route in routes)
    assert "BREW" not in {dict(labels)["method"] for labels in after["cairn_http_request_seconds_count"]}


def test_a_body_that_is_too_large_is_counted_too(client: TestClient) -> None:
    labels = {"method": "POST", "route": "none", "status": "413"}
    before = answered(figures(client), **labels)
    body = b"[" + b" " * (33 * 1024 * 1024)
    assert client.post("/api/v1/checkpoints:batch", content=body).status_code == 413
    assert answered(figures(client), **labels) - before == 1


def test_buckets_are_cumulative_and_end_with_all(client: TestClient) -> None:
    client.get("/health/live")
    found = figures(client)
    own = (("method", "GET"), ("route", "/health/live"), ("status", "200"))
    buckets = [
        found["cairn_http_request_seconds_bucket"][tuple(sorted((("le", le), *own)))]
        for le in (*(str(bound) for bound in BOUNDS), "+Inf")
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == found["cairn_http_request_seconds_count"][own]
    assert found["cairn_http_request_seconds_sum"][own] > 0


def test_work_that_waits_and_the_process_itself_are_there(client: TestClient) -> None:
    found = figures(client)
    for name in ("cairn_outbox_events", "cairn_outbox_age_seconds", "cairn_workers", "process_resident_memory_bytes"):
        assert next(iter(found[name].values())) >= 0
    assert set(found["cairn_build_info"].values()) == {1}
