"""What no caller should send: answered with a problem that names the place, never with a failure of the service."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.tokens import open_web_session


@pytest.fixture
def run_id(client: TestClient) -> str:
    client.post("/api/v1/projects", json={"name": "p"})
    made: str = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    return made


HOSTILE = ["%00", "a%00b", "%ED%A0%80", "x" * 5_000, "..", "%2e%2e%2f", "9" * 400, "-1", "'; DROP TABLE run; --"]


PLACES = [
    "/runs/{}",
    "/runs/{}/attempts",
    "/runs/{}/series",
    "/checkpoints/{}",
    "/checkpoints/{}/lineage",
    "/checkpoints/{}/profile",
    "/checkpoints/{}/scores",
    "/aliases/{}/production",
    "/aliases/p/{}",
    "/aliases/p/{}/history",
    "/runs?project={}",
    "/runs?name={}",
    "/runs?cursor={}",
    "/runs?limit={}",
    "/checkpoints?filter={}",
    "/checkpoints?order_by={}",
    "/checkpoints?fields={}",
    "/checkpoints?cursor={}",
    "/checkpoints?filter=run.name='{}'",
    "/checkpoints?filter=config.`{}`=1",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_place_is_a_problem_and_no_failure(client: TestClient, run_id: str, text: str) -> None:
    for place in [*PLACES, f"/runs/{run_id}/series?name={{}}"]:
        answer = client.get("/api/v1" + place.format(text))
        assert answer.status_code in (200, 400, 404, 422), (place, answer.text)
        if answer.status_code != 200:
            assert answer.headers["content-type"] == "application/problem+json", place
            assert len(answer.content) < 20_000, place


@pytest.mark.parametrize("number", ["0", "-1", "9" * 30, "1.5", "%00", str(2**31), str(2**63)])
def test_a_number_of_an_attempt_that_cannot_be_is_refused(client: TestClient, run_id: str, number: str) -> None:
    answer = client.patch(f"/api/v1/runs/{run_id}/attempts/{number}", json={"state": "finished"})
    assert answer.status_code in (404, 422), answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/runs/{run}/attempts", {"restart": True, "skip": [{"from": 5, "to": 3}]}),
        ("/runs/{run}/attempts", {"resumed_from": "0000000000000"}),
        ("/runs/{run}/attempts", {"resumed_from": {"attempt": 2**31 - 1, "step": 5}}),
        ("/runs/{run}/attempts", {"resumed_from": {"step": 2**63}}),
        ("/runs/{run}/checkpoints", {"step": 1, "attempt": 2**31 - 1}),
        ("/runs/{run}/checkpoints", {"step": 1, "scores": [{"benchmark": "b", "value": 1, "replica_id": "0" * 13}]}),
        ("/runs/{run}/checkpoints", {"step": 1, "parents": [{"checkpoint_id": "0" * 13, "relation": "merged_from"}]}),
        ("/runs/{run}/checkpoints", {"step": 1, "data_cursor": "x" * 70_000}),
        ("/runs/{run}/checkpoints", {"step": 1, "config": {f"k{n}": n for n in range(20_001)}}),
        ("/runs/{run}/checkpoints", {"step": 1, "layout": {"world_size": 2**63}}),
        (
            "/runs/{run}/checkpoints",
            {
                "step": 1,
                "replicas": [
                    {"uri": "a", "tier": "local", "parts": [{"host": "h", "ranks": "9-0", "uri": "a"}]},
                ],
            },
        ),
        (
            "/runs/{run}/checkpoints",
            {
                "step": 1,
                "replicas": [
                    {
                        "uri": "a",
                        "tier": "local",
                        "parts": [{"host": "h", "ranks": ",".join(["0-9999999"] * 300), "uri": "a"}],
                    },
                ],
            },
        ),
        ("/checkpoints/{checkpoint}/scores", [{"benchmark": "b", "value": 1, "replica_id": "0" * 13}]),
        ("/checkpoints/{checkpoint}/scores", [{"benchmark": "b", "value": 1, "metric": "a\0b"}]),
        ("/checkpoints/{checkpoint}/scores", [{"benchmark": "b", "value": 1, "stderr": -1}]),
        ("/checkpoints/{checkpoint}/scores", [{"benchmark": "b", "value": 1, "n_samples": 0}]),
        ("/checkpoints/{checkpoint}/scores", {"benchmark": "b", "value": 1}),
        ("/runs/{run}/series", [{"name": "loss", "steps": [1, 2], "values": [1]}]),
        ("/runs/{run}/series", [{"name": "loss", "steps": [], "values": []}]),
        ("/runs/{run}/series", [{"name": "loss", "steps": [1, 1], "values": [1, 1]}]),
        ("/runs/{run}/series", [{"name": "loss", "steps": [2**63], "values": [1]}]),
        ("/compare", {"baseline": "0" * 13, "candidate": "0" * 13}),
        ("/rollback", {"run_id": "0" * 13}),
        ("/rollback", {"alias": "nope/nope"}),
        ("/search", {"query": "x\0y"}),
        ("/search", {"conditions": [{"benchmark": "b", "relation": "=", "threshold": "NaN"}]}),
        ("/search", {"conditions": [{"field": "step", "relation": ">", "threshold": 10**400}]}),
    ],
)
def test_what_cannot_be_kept_is_a_problem_that_names_it(client: TestClient, run_id: str, path: str, body: Any) -> None:
    checkpoint = client.post(f"/api/v1/runs/{run_id}/checkpoints", json={"step": 0}).json()["id"]
    answer = client.post("/api/v1" + path.format(run=run_id, checkpoint=checkpoint), json=body)
    assert answer.status_code in (400, 404, 409, 422), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    listed = client.get("/api/v1/checkpoints", params={"fields": "scores.b"}).json()["items"]
    assert [item["id"] for item in listed] == [checkpoint]


def test_skipped_ranges_that_start_alike_are_their_union(client: TestClient, run_id: str) -> None:
    skip = [{"from": 5, "to": 9}, {"from": 5, "to": 6}, {"from": 20, "to": 20}]
    made = client.post(f"/api/v1/runs/{run_id}/attempts", json={"skip": skip}).json()
    assert made["skip"] == [{"from": 5, "to": 9}, {"from": 20, "to": 20}]


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"parents": [{"checkpoint_id": "0" * 13, "relation": "merged_from"}]}, "/7/parents/0/checkpoint_id"),
        ({"scores": [{"benchmark": "b", "value": 1, "replica_id": "0" * 13}]}, "/7/scores/0/replica_id"),
        ({"config": {f"k{n}": n for n in range(20_001)}}, "/7/config"),
        ({"data_cursor": "x" * 70_000}, "/7/data_cursor"),
    ],
)
def test_a_batch_names_the_item_whose_content_cannot_be_kept(
    client: TestClient, change: dict[str, Any], pointer: str
) -> None:
    items: list[dict[str, Any]] = [{"project": "p", "run": "r", "step": step} for step in range(10)]
    items[7] |= change
    answer = client.post("/api/v1/checkpoints:batch", json=items)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    assert client.get("/api/v1/projects").json()["items"] == []


def test_every_refused_item_of_a_batch_is_named_and_not_the_first_alone(client: TestClient) -> None:
    items: list[dict[str, Any]] = [{"project": "p", "run": "r", "step": step} for step in range(1000)]
    items[3] |= {"data_cursor": "x" * 70_000}
    items[990] |= {"parents": [{"checkpoint_id": "0" * 13, "relation": "merged_from"}]}
    items[995] |= {"project": "another", "data_cursor": "x" * 70_000}
    answer = client.post("/api/v1/checkpoints:batch", json=items)
    named = [error["pointer"].split("/")[1] for error in answer.json()["errors"]]
    assert (answer.status_code, named) == (422, ["3", "990", "995"])


def test_a_score_names_a_copy_of_its_own_checkpoint(client: TestClient, run_id: str) -> None:
    copy = [{"uri": "/mnt/a", "tier": "shared"}]
    first, second = (
        client.post(f"/api/v1/runs/{run_id}/checkpoints", json={"step": step, "replicas": copy}).json()["id"]
        for step in (1, 2)
    )
    replica = client.get(f"/api/v1/checkpoints/{first}").json()["replicas"][0]["id"]
    score = [{"benchmark": "b", "value": 0.5}, {"benchmark": "b", "value": 0.6, "replica_id": replica}]
    taken = client.post(f"/api/v1/checkpoints/{first}/scores", json=score).json()
    assert taken == {"received": 2, "recorded": 2, "warnings": []}
    refused = client.post(f"/api/v1/checkpoints/{second}/scores", json=score)
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/replica-unknown")
    assert refused.json()["errors"][0]["pointer"] == "/1/replica_id"
    assert client.get(f"/api/v1/checkpoints/{second}/scores").json()["items"] == []


def test_ranks_are_counted_before_they_are_listed(client: TestClient, run_id: str) -> None:
    """'0-9999999' a hundred times over is a kilobyte, and would be a billion numbers."""
    part = {"host": "h", "ranks": ",".join(["0-9999999"] * 100), "uri": "a"}
    body = {"step": 1, "replicas": [{"uri": "a", "tier": "local", "parts": [part] * 500}]}
    answer = client.post(f"/api/v1/runs/{run_id}/checkpoints", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/replicas/0/parts")


def test_a_manifest_names_each_file_once(client: TestClient, run_id: str) -> None:
    files = [{"path": path, "bytes": 1} for path in ("a", "b", "c/b", "b")]
    copy = {"uri": "/ckpt/1", "tier": "shared", "manifest": files}
    for path, prefix, body in (
        (f"/api/v1/runs/{run_id}/checkpoints", "", {"step": 1, "replicas": [copy]}),
        ("/api/v1/checkpoints:batch", "/0", [{"project": "p", "run": "r", "step": 1, "replicas": [copy]}]),
    ):
        refused = client.post(path, json=body)
        assert refused.status_code == 422, refused.text
        (error,) = refused.json()["errors"]
        assert error["pointer"] == f"{prefix}/replicas/0/manifest"
        assert error["detail"] == "names 'b' twice, at 1 and 3; expected each file once"
    copy["manifest"] = files[:3]
    assert client.post(f"/api/v1/runs/{run_id}/checkpoints", json={"step": 1, "replicas": [copy]}).status_code == 201


def test_unread_bodies_of_strangers_are_refused_for_the_token_first(client: TestClient) -> None:
    answer = client.post("/api/v1/checkpoints:batch", content=b"{not json", headers={"Authorization": "Bearer no"})
    assert answer.status_code == 401


def test_a_hostile_place_of_a_page_is_no_failure_either(client: TestClient, run_id: str) -> None:
    signed_in = client.post("/login", data={"token": "a\0b"})
    assert signed_in.status_code < 500
    with client.app.state.database.write() as session:  # type: ignore[attr-defined]
        cookie = open_web_session(session, client.headers["authorization"].split()[1])
    client.cookies.set("cairn_session", cookie)
    pages = ["/?q={}", "/?sort={}", "/?cursor={}", "/runs/{}", "/checkpoints/{}", "/aliases/{}/x", "/aliases/p/{}"]
    pages += ["/find?q={}", "/compare?baseline={}&candidate={}", "/rollback?run={}", "/login?code={}", "/login?next={}"]
    for text in HOSTILE:
        for page in pages:
            answer = client.get(page.replace("{}", text), headers={"Accept": "text/html"}, follow_redirects=False)
            assert answer.status_code < 500, (page, text)
