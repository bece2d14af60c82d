"""A value that its benchmark's scale cannot hold is recorded as it came, and said at once to whoever sent it."""

from starlette.testclient import TestClient

ODD = "gsm8k: 54 cannot be of its scale in the benchmark table (0 to 1); kept as it came, never ranked"


def run_of(client: TestClient) -> str:
    client.post("/api/v1/projects", json={"name": "llm"})
    made: str = client.post("/api/v1/runs", json={"project": "llm", "name": "7b"}).json()["id"]
    return made


def test_a_registration_says_so(client: TestClient) -> None:
    path = f"/api/v1/runs/{run_of(client)}/checkpoints"
    body = {"step": 1, "scores": {"gsm8k": 54, "mmlu": 0.5, "unheard_of": 400}}
    for status in (201, 200):
        answer = client.post(path, json=body)
        assert (answer.status_code, answer.json()["warnings"]) == (status, [ODD])
    assert client.post(path, json={"step": 2, "scores": {"gsm8k": 0.54}}).json()["warnings"] == []


def test_a_batch_says_so_once_for_each_project(client: TestClient) -> None:
    items = [
        {"project": project, "run": "a", "step": step, "scores": {"gsm8k": 54.0}}
        for project in ("one", "two")
        for step in (1, 2)
    ]
    answer = client.post("/api/v1/checkpoints:batch", json=items).json()
    assert answer["accepted"] == 4
    assert answer["warnings"] == [ODD.replace("54 cannot", "54 and 1 more cannot")] * 2


def test_scores_that_arrive_later_say_so(client: TestClient) -> None:
    made = client.post(f"/api/v1/runs/{run_of(client)}/checkpoints", json={"step": 1}).json()["id"]
    answer = client.post(f"/api/v1/checkpoints/{made}/scores", json=[{"benchmark": "gsm8k", "value": 54}])
    assert answer.json() == {"received": 1, "recorded": 1, "warnings": [ODD]}


def test_the_project_has_the_last_word_on_its_scales(client: TestClient) -> None:
    path = f"/api/v1/runs/{run_of(client)}/checkpoints"
    said = client.put("/api/v1/projects/llm/benchmarks/gsm8k", json={"scale": "percent"})
    assert said.status_code == 200
    assert client.post(path, json={"step": 1, "scores": {"gsm8k": 54}}).json()["warnings"] == []
    (note,) = client.post(path, json={"step": 2, "scores": {"gsm8k": 540}}).json()["warnings"]
    assert "(0 to 100)" in note


def test_what_is_not_finite_is_on_every_scale(client: TestClient) -> None:
    path = f"/api/v1/runs/{run_of(client)}/checkpoints"
    assert client.post(path, json={"step": 1, "scores": {"gsm8k": "NaN"}}).json()["warnings"] == []


def test_a_result_that_does_not_count_says_what_does_and_what_would_change_it(client: TestClient) -> None:
    made = client.post(f"/api/v1/runs/{run_of(client)}/checkpoints", json={"step": 1}).json()["id"]
    path, score = f"/api/v1/checkpoints/{made}/scores", {"benchmark": "gsm8k", "metric": "acc", "value": 0.6}
    dated = score | {"value": 0.5, "evaluated_at": "2026-11-02T10:00:00Z"}
    assert client.post(path, json=[score]).json()["warnings"] == []
    assert client.post(path, json=[dated]).json()["warnings"] == []
    for sent, why in (({}, "this one says no time"), ({"evaluated_at": "2026-11-01T00:00:00Z"}, "later than this one")):
        (note,) = client.post(path, json=[score | sent]).json()["warnings"]
        assert note.startswith("gsm8k.acc: kept, but 0.5 of 2026-11-02T10:00:00Z still counts"), note
        assert why in note
        assert "give it a later evaluated_at" in note
    assert client.post(path, json=[score, dated]).json()["warnings"] == []


def test_a_correction_of_a_correction_is_in_effect_at_once(client: TestClient) -> None:
    made = client.post(f"/api/v1/runs/{run_of(client)}/checkpoints", json={"step": 1}).json()["id"]
    for value, recorded in ((0.6, 1), (0.06, 1), (0.6, 0)):
        body = [{"benchmark": "gsm8k", "value": value}]
        answer = client.post(f"/api/v1/checkpoints/{made}/scores", json=body).json()
        assert answer == {"received": 1, "recorded": recorded, "warnings": []}
        (score,) = client.get(f"/api/v1/checkpoints/{made}").json()["scores"]
        assert score["value"] == value
