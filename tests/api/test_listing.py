"""Lines of GET /checkpoints: ids as text, assumed times said, mistakes named by parameter and place."""

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.evals.scores import NewScore
from registry.ids import to_text
from tests.factories import at, make_checkpoint, make_project, make_run


def test_ids_among_the_values_are_the_same_text_as_elsewhere(client: TestClient, session: Session) -> None:
    run = make_run(session)
    made = to_text(make_checkpoint(session, run, 5))
    for query in ({"fields": "id, run.id"}, {"filter": f"id = '{made}' and run.id = '{to_text(run.id)}'"}):
        (item,) = client.get("/api/v1/checkpoints", params=query).json()["items"]
        assert item["values"] == {"id": made, "run.id": to_text(run.id)}
        assert item["id"] == made
        assert item["run"]["id"] == item["values"]["run.id"]


def test_an_assumed_time_is_said_and_can_be_asked_for(client: TestClient, session: Session) -> None:
    run = make_run(session)
    make_checkpoint(session, run, 1, saved_at=at("2026-11-01"))
    make_checkpoint(session, run, 2)
    items = client.get("/api/v1/checkpoints", params={"order_by": "step"}).json()["items"]
    assert [(each["step"], each["saved_at_assumed"]) for each in items] == [(1, False), (2, True)]
    items = client.get("/api/v1/checkpoints", params={"filter": "not saved_at_assumed"}).json()["items"]
    assert [each["step"] for each in items] == [1]


@pytest.mark.parametrize(
    ("parameter", "title"),
    [
        ("filter", "The filter could not be read"),
        ("order_by", "The order_by could not be read"),
        ("fields", "The fields could not be read"),
    ],
)
def test_a_mistake_names_its_parameter_and_counts_from_one_for_people(
    client: TestClient, parameter: str, title: str
) -> None:
    answer = client.get("/api/v1/checkpoints", params={parameter: "stpe"})
    problem = answer.json()
    assert (answer.status_code, problem["type"], problem["title"]) == (400, "/problems/invalid-filter", title)
    assert (problem["position"], problem["parameter"]) == (0, parameter)
    assert "at character 1: unknown field 'stpe'" in problem["detail"].replace("At", "at")


def test_an_unknown_capability_is_refused_at_its_place_and_an_unknown_benchmark_by_its_pointer(
    client: TestClient,
) -> None:
    answer = client.get("/api/v1/checkpoints", params={"filter": "step > 5 and capabilities.mth > 0.8"})
    assert (answer.status_code, answer.json()["position"]) == (400, len("step > 5 and capabilities."))
    assert "Did you mean math?" in answer.json()["detail"]
    wrong = {"benchmark": "gsmk8", "relation": ">", "threshold": 0.5}
    answer = client.post("/api/v1/search", json={"conditions": [wrong]})
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/conditions/0/benchmark")


def test_a_listing_names_the_projects_that_have_a_benchmark_as_another_score(
    client: TestClient, session: Session
) -> None:
    for name, metric in (("a", "exact_match"), ("b", "ours")):
        run = make_run(session, make_project(session, name))
        make_checkpoint(session, run, 1, scores=[NewScore("gsm8k", 0.5, metric=metric)])
    page = client.get("/api/v1/checkpoints", params={"filter": "scores.gsm8k > 0"}).json()
    assert [each["project"] for each in page["items"]] == ["a"]
    ours = "scores.gsm8k.ours.none"
    left_out = {"scores.gsm8k": [{"score": ours, "scores": [ours], "projects": ["b"]}]}
    assert page["left_out"] == left_out
    found = client.post("/api/v1/search", json={"query": "gsm8k > 0.1"}).json()
    assert found["interpretation"]["left_out"] == left_out
    assert found["interpretation"]["at_most"] is None
