"""The benchmark table over HTTP: shapes, statuses, who may change it; and what searches take beside a question."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.db import Database
from registry.types import Scope
from tests.api.conftest import client_of
from tests.factories import make_checkpoint, make_project, make_run


@pytest.fixture
def filled(client: TestClient) -> TestClient:
    items = [
        {
            "project": "p",
            "run": f"r{number}",
            "step": 1,
            "scores": {"gsm8k": number / 25, "asdiv": number / 25, "my_gsm": number / 25},
        }
        for number in range(25)
    ]
    assert client.post("/api/v1/checkpoints:batch", json=items).status_code == 200
    return client


def search(client: TestClient, **body: Any) -> Any:
    answer = client.post("/api/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_table_is_listed_page_by_page(filled: TestClient) -> None:
    names: list[str] = []
    cursor = None
    while True:
        params = {"limit": 40, **({"cursor": cursor} if cursor else {})}
        page = filled.get("/api/v1/projects/p/benchmarks", params=params).json()
        names += [each["name"] for each in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert names == sorted(names)
    assert {"gsm8k", "mmlu", "my_gsm"} <= set(names)
    (unmapped,) = filled.get("/api/v1/projects/p/benchmarks", params={"only": "unmapped"}).json()["items"]
    assert unmapped["name"] == "my_gsm"
    assert unmapped["occurring"] == [{"metric": "", "filter": "", "low": 0.0, "high": 0.96}]


def test_a_benchmark_is_set_changed_and_given_back(filled: TestClient) -> None:
    path = "/api/v1/projects/p/benchmarks/my_gsm"
    said = filled.put(path, json={"capability": "math", "scale": "fraction", "chance": 0.1})
    assert said.status_code == 200
    assert (said.json()["capability"], said.json()["own"]) == ("math", ["capability", "scale", "chance"])
    patched = filled.patch(path, json={"chance": None, "note": "ours"}).json()
    assert (patched["chance"], patched["note"], patched["own"]) == (0.0, "ours", ["capability", "scale", "note"])
    assert filled.put(path, json={}).json()["own"] == []
    assert filled.get(path).json()["needs_mapping"] is True


def test_a_change_counts_in_the_next_answer(filled: TestClient) -> None:
    before = search(filled, query="strong math", project="p")["results"][0]["evidence"][0]["benchmarks"]
    filled.put("/api/v1/projects/p/benchmarks/my_gsm", json={"capability": "math"})
    after = search(filled, query="strong math", project="p")["results"][0]["evidence"][0]["benchmarks"]
    assert {each["benchmark"] for each in before} == {"gsm8k", "asdiv"}
    assert {each["benchmark"] for each in after} == {"gsm8k", "asdiv", "my_gsm"}


@pytest.mark.parametrize(
    ("name", "body", "status", "pointer"),
    [
        ("gsm8k", {"capability": "cooking"}, 422, "/capability"),
        ("gsm8k", {"direction": "sideways"}, 422, "/direction"),
        ("gsm8k", {"chance": "NaN"}, 422, "/chance"),
        ("gsm8k", {"chance": True}, 422, "/chance"),
        ("gsm8k", {"sample_count": 0}, 422, "/sample_count"),
        ("gsm8k", {"unknown": 1}, 422, "/unknown"),
        ("gsm8k", {"preferred_metrics": [["acc"]]}, 422, "/preferred_metrics/0"),
        ("gsm8k", {"aliases": ["x"] * 51}, 422, "/aliases"),
    ],
)
def test_wrong_words_are_refused_with_their_place(
    filled: TestClient, name: str, body: dict[str, Any], status: int, pointer: str
) -> None:
    refused = filled.put(f"/api/v1/projects/p/benchmarks/{name}", json=body)
    assert refused.status_code == status
    assert pointer in [error["pointer"] for error in refused.json()["errors"]]


def test_a_name_with_slashes_and_bars_is_one_name(filled: TestClient) -> None:
    path = "/api/v1/projects/p/benchmarks/harness%7Cour%2Ftask%7C5"
    assert filled.put(path, json={"capability": "code"}).json()["name"] == "harness|our/task|5"
    assert filled.get(path).json()["capability"] == "code"
    assert filled.put("/api/v1/projects/p/benchmarks/%20", json={}).status_code == 400
    assert filled.get("/api/v1/projects/p/benchmarks/nobody").status_code == 404


def test_who_may_read_only_changes_nothing(filled: TestClient, database: Database, tmp_path: Path) -> None:
    with client_of(database, tmp_path, Scope.READ) as reader:
        assert reader.get("/api/v1/projects/p/benchmarks").status_code == 200
        assert reader.put("/api/v1/projects/p/benchmarks/gsm8k", json={"chance": 0.1}).status_code == 403


def test_more_like_a_checkpoint(filled: TestClient) -> None:
    found = search(filled, query="strong math", project="p")["results"]
    middle = filled.get("/api/v1/checkpoints", params={"filter": "scores.gsm8k = 0.48"}).json()["items"][0][
        "checkpoint"
    ]
    answer = search(filled, like=middle["id"])
    assert answer["interpretation"]["conditions"][0]["relation"] == "like"
    steps = [each["checkpoint"]["run"]["name"] for each in answer["results"][:2]]
    assert set(steps) == {"r11", "r13"}
    assert middle["id"] not in [each["checkpoint"]["id"] for each in answer["results"]]
    assert answer["results"][0]["evidence"][0]["coverage"] == 1.0
    assert found
    assert filled.post("/api/v1/search", json={"like": "0000000000000"}).status_code == 404
    both = filled.post("/api/v1/search", json={"like": middle["id"], "query": "strong math"})
    assert (both.status_code, both.json()["type"]) == (422, "/problems/invalid-search")


def test_the_newest_first_and_an_order_that_is_none(filled: TestClient) -> None:
    newest = search(filled, query="newest with strong math", project="p")
    assert newest["interpretation"]["order"] == "newest"
    times = [each["checkpoint"]["saved_at"] for each in newest["results"]]
    assert times == sorted(times, reverse=True)
    assert filled.post("/api/v1/search", json={"query": "strong math", "order": "random"}).status_code == 422


def test_a_single_run_can_be_held_against_published_figures(client: TestClient) -> None:
    items = [
        {
            "project": "one",
            "run": "large",
            "step": step,
            "scores": [
                {"benchmark": name, "metric": "acc", "value": value}
                for name, value in (("arc_easy", 0.25 + step / 100), ("sciq", 0.2 + step / 60), ("mmlu", 0.25))
            ],
        }
        for step in range(0, 45, 5)
    ]
    client.post("/api/v1/checkpoints:batch", json=items)
    own = search(client, query="strong knowledge, strong chat", project="one")
    assert own["population"]["capabilities"][0]["basis"] == "absolute"
    against = search(client, query="strong knowledge", project="one", population="reference:pythia")
    assert against["strict"]
    assert against["population"]["reference"] == "reference:pythia"
    assert against["population"]["capabilities"][0]["runs"] == 10
    assert "published Pythia checkpoints" in against["population"]["warnings"][0]
    assert "lm-evaluation-harness 0.3" in against["population"]["warnings"][0]
    chat = search(client, query="strong knowledge, weak chat", project="one", population="reference:pythia")
    assert (chat["strict"], chat["results"]) == (False, [])
    assert "unknown, not weak" in " ".join(chat["population"]["warnings"])
    top = against["results"][0]["checkpoint"]["id"]
    profile = client.get(f"/api/v1/checkpoints/{top}/profile", params={"population": "reference:pythia"}).json()
    knowledge = next(each for each in profile["capabilities"] if each["capability"] == "knowledge")
    assert knowledge["percentile"] > 0.6
    assert "chat" in profile["not_evaluated"]
    assert client.get(f"/api/v1/checkpoints/{top}/profile").json()["capabilities"][0]["percentile"] is None
    unknown = client.post("/api/v1/search", json={"query": "strong math", "population": "reference:nobody"})
    assert (unknown.status_code, unknown.json()["type"]) == (422, "/problems/unknown-population")


def test_the_lowest_loss_comes_first_by_words_and_by_order(client: TestClient, session: Session) -> None:
    run = make_run(session, make_project(session, "losses"))
    for step, loss in ((1, 2.5), (2, float("nan")), (3, 1.5)):
        make_checkpoint(session, run, step, loss=loss)
    for asked in ({"query": "lowest loss"}, {"query": "step > 0", "order": "lowest_loss"}):
        answer = search(client, project="losses", **asked)
        assert answer["interpretation"]["order"] == "lowest_loss"
        assert [(each["checkpoint"]["step"], each["loss"]) for each in answer["results"]] == [(3, 1.5), (1, 2.5)]
