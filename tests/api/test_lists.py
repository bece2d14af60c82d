"""Lists page, take nothing they do not know, and show a bound token nothing of other projects."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from api.paging import encode_cursor
from registry.db import Database
from registry.models import Worker
from registry.projects import find_project
from registry.tokens import issue_token
from registry.types import Scope


def walk(client: TestClient, path: str, **params: Any) -> list[Any]:
    items: list[Any] = []
    cursor = None
    while True:
        page = client.get(path, params={**params, "limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        assert len(page["items"]) <= 2
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            return items


@pytest.fixture
def filled(client: TestClient) -> TestClient:
    items = [{"project": f"p{number}", "run": f"r{number}", "step": 1} for number in range(5)]
    client.post("/api/v1/checkpoints:batch", json=items)
    return client


def test_projects_runs_aliases_and_histories_are_paged(filled: TestClient) -> None:
    assert [each["name"] for each in walk(filled, "/api/v1/projects")] == [f"p{number}" for number in range(5)]
    assert len(walk(filled, "/api/v1/runs")) == 5
    targets = [item["id"] for item in walk(filled, "/api/v1/checkpoints", order_by="project")]
    for number, target in enumerate(targets):
        filled.put(f"/api/v1/aliases/p{number}/production", json={"checkpoint_id": target})
    assert [each["project"] for each in walk(filled, "/api/v1/aliases")] == [f"p{number}" for number in range(5)] or (
        {each["project"] for each in walk(filled, "/api/v1/aliases")} == {f"p{number}" for number in range(5)}
    )
    more = [{"project": "p0", "run": "r0", "step": step} for step in (2, 3, 4)]
    for result in filled.post("/api/v1/checkpoints:batch", json=more).json()["results"]:
        filled.put("/api/v1/aliases/p0/production", json={"checkpoint_id": result["id"]})
    moves = walk(filled, "/api/v1/aliases/p0/production/history")
    assert [move["checkpoint"]["step"] for move in moves] == [4, 3, 2, 1]


def test_lists_that_come_whole_are_paged_where_a_limit_is_asked(client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "p"})
    run = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    for key in "abc":
        client.post(f"/api/v1/runs/{run}/attempts", json={"key": key, "restart": True})
    curves = [{"attempt": 1, "name": name, "steps": [1], "values": [2]} for name in ("loss", "lr", "mfu")]
    client.post(f"/api/v1/runs/{run}/series", json=curves)
    results = [{"benchmark": "b", "value": value / 10} for value in range(5)]
    made = client.post(f"/api/v1/runs/{run}/checkpoints", json={"step": 1, "scores": results}).json()["id"]
    for path, count in ((f"runs/{run}/attempts", 3), (f"runs/{run}/series", 3), (f"checkpoints/{made}/scores", 5)):
        whole = client.get(f"/api/v1/{path}").json()
        assert (len(whole["items"]), whole["next_cursor"]) == (count, None), path
        assert walk(client, f"/api/v1/{path}") == whole["items"], path
        cursor = client.get(f"/api/v1/{path}", params={"limit": 1}).json()["next_cursor"]
        other = client.get("/api/v1/runs", params={"cursor": cursor})
        assert (other.status_code, other.json()["type"]) == (400, "/problems/invalid-cursor")


def test_every_list_takes_a_limit_and_a_cursor(client: TestClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()
    shapes = {name: set(each.get("properties", {})) for name, each in paths["components"]["schemas"].items()}
    lists = {}
    for path, calls in paths["paths"].items():
        content = calls.get("get", {}).get("responses", {}).get("200", {}).get("content", {})
        shape = content.get("application/json", {}).get("schema", {}).get("$ref", "").rpartition("/")[2]
        if {"items", "next_cursor"} <= shapes.get(shape, set()):
            lists[path] = {each["name"] for each in calls["get"]["parameters"] if each["in"] == "query"}
    assert len(lists) >= 15
    assert [path for path, taken in lists.items() if not {"limit", "cursor"} <= taken] == []


def test_links_and_workers_are_paged_while_they_come_and_go(database: Database, client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "p"})
    run = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    links = f"/api/v1/runs/{run}/trackers"
    for name in "abcde":
        client.post(links, json={"kind": "wandb", "run_id": name, "entity": "e", "project": "q"})
    with database.write() as session:
        for number, name in enumerate("abcde"):
            at = datetime(2026, 11, 1, hour=number // 2, tzinfo=UTC)  # two and two started at once
            session.add(Worker(name=name, started_at=at, seen_at=at))
    for path, names in ((links, "abcde"), ("/api/v1/workers", "ecdab")):
        whole = client.get(path).json()
        assert [each.get("name") or each["run_id"] for each in whole["items"]] == list(names)
        assert whole["next_cursor"] is None
        assert walk(client, path) == whole["items"]
        assert client.get(path, params={"cursor": encode_cursor(["x"], "workers")}).status_code == 400
    first = client.get(links, params={"limit": 2}).json()
    assert "fields" in first
    client.delete(f"{links}/{first['items'][1]['id']}")
    rest = client.get(links, params={"cursor": first["next_cursor"]}).json()
    assert [each["run_id"] for each in rest["items"]] == ["c", "d", "e"]


def test_an_empty_cursor_is_no_first_page(filled: TestClient) -> None:
    for path in ("projects", "runs", "aliases", "checkpoints"):
        assert filled.get(f"/api/v1/{path}", params={"cursor": ""}).status_code == 400, path


@pytest.mark.parametrize("path", ["projects", "runs", "aliases", "checkpoints"])
def test_a_cursor_of_another_list_and_a_limit_of_nothing_are_refused(filled: TestClient, path: str) -> None:
    cursor = filled.get("/api/v1/projects", params={"limit": 1}).json()["next_cursor"]
    if path != "projects":
        assert filled.get(f"/api/v1/{path}", params={"cursor": cursor}).status_code == 400
    assert filled.get(f"/api/v1/{path}", params={"cursor": "nonsense!"}).status_code == 400
    for limit in ("0", "-1", "1000000000", "x"):
        refused = filled.get(f"/api/v1/{path}", params={"limit": limit})
        assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/limit")


def test_a_query_parameter_with_a_typo_is_refused(filled: TestClient) -> None:
    refused = filled.get("/api/v1/checkpoints", params={"fitler": "step > 5"})
    assert (refused.status_code, refused.json()["errors"][0]["pointer"]) == (422, "/query/fitler")
    assert "filter" in refused.json()["detail"]


def test_a_bound_token_cannot_tell_a_name_that_is_taken_from_one_that_is_free(
    database: Database, filled: TestClient, tmp_path: Path
) -> None:
    with database.write() as session:
        own = find_project(session, "p0").id
        token = issue_token(session, "bound", Scope.WRITE, project_ids=[own], actor="test")
    headers = {"Authorization": f"Bearer {token}"}
    for make in (
        lambda name: filled.get("/api/v1/runs", params={"project": name}, headers=headers),
        lambda name: filled.post("/api/v1/projects", json={"name": name}, headers=headers),
        lambda name: filled.post("/api/v1/runs", json={"project": name, "name": "r"}, headers=headers),
        lambda name: filled.post("/api/v1/search", json={"query": "strong math", "project": name}, headers=headers),
        lambda name: filled.post("/api/v1/rollback", json={"alias": f"{name}/production"}, headers=headers),
        lambda name: filled.get(f"/api/v1/aliases/{name}/production", headers=headers),
    ):
        taken, free = make("p1"), make("p9")
        assert taken.status_code == free.status_code == 403
        assert taken.text.replace("p1", "p9") == free.text
    assert [each["name"] for each in filled.get("/api/v1/projects", headers=headers).json()["items"]] == ["p0"]
    assert len(filled.get("/api/v1/runs", headers=headers).json()["items"]) == 1


def test_the_description_needs_a_token_too(client: TestClient) -> None:
    assert client.get("/api/v1/openapi.json").json()["openapi"].startswith("3.")
    client.headers.pop("Authorization")
    assert client.get("/api/v1/openapi.json").status_code == 401


def test_an_alias_that_must_not_exist_yet(filled: TestClient) -> None:
    (target,) = filled.get("/api/v1/checkpoints", params={"filter": "project = 'p0'"}).json()["items"]
    body = {"checkpoint_id": target["id"], "expected": None}
    assert filled.put("/api/v1/aliases/p0/best", json=body).status_code == 200
    again = filled.put("/api/v1/aliases/p0/best", json=body)
    assert (again.status_code, again.json()["type"]) == (409, "/problems/alias-moved")


def test_a_second_start_says_what_it_did_not_change(client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "llm"})
    first = client.post("/api/v1/runs", json={"project": "llm", "name": "r", "owner": "ada", "config": {"lr": 1e-4}})
    assert (first.json()["config"], first.json()["not_applied"]) == ({"lr": 1e-4}, [])
    again = client.post(
        "/api/v1/runs", json={"project": "llm", "name": "r", "owner": "bob", "team": "x", "config": {"lr": 2}}
    )
    assert (again.status_code, again.json()["not_applied"]) == (200, ["owner", "config"])
    assert again.json()["team"] == "x"  # of which the first start said nothing
    assert client.get(f"/api/v1/runs/{first.json()['id']}").json()["owner"] == "ada"


@pytest.mark.parametrize("name", [".", "..", "a/b", "", "x" * 129])
def test_names_that_no_path_can_carry_are_refused(client: TestClient, name: str) -> None:
    assert client.post("/api/v1/projects", json={"name": name}).status_code == 422


@pytest.mark.parametrize("path", ["projects", "checkpoints:batch"])
def test_a_compressed_body_is_refused_with_the_reason(client: TestClient, path: str) -> None:
    refused = client.post(f"/api/v1/{path}", content=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    assert (refused.status_code, refused.json()["type"]) == (415, "/problems/unsupported-media-type")


def test_an_attempt_is_listed_with_the_last_step_it_made_and_the_last_it_saved(client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "p"})
    run = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    for key in "ab":
        client.post(f"/api/v1/runs/{run}/attempts", json={"key": key, "restart": True})
    client.post(f"/api/v1/runs/{run}/checkpoints", json={"attempt": 1, "step": 30})
    client.patch(f"/api/v1/runs/{run}/attempts/1", json={"step": 35})

    def steps() -> list[tuple[int | None, int | None]]:
        items = client.get(f"/api/v1/runs/{run}/attempts").json()["items"]
        return [(each["saved_step"], each["reached_step"]) for each in items]

    assert steps() == [(30, 35), (None, None)]
    curves = [{"attempt": attempt, "name": "loss", "steps": [5, 37], "values": [2, 1]} for attempt in (1, 2)]
    client.post(f"/api/v1/runs/{run}/series", json=curves)
    assert steps() == [(30, 37), (None, 37)]
