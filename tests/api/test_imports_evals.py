"""POST /imports: result files read whole or refused with the reason, into the checkpoint that they belong to."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient


def result_file(step: int | None = 3000, **results: dict[str, float]) -> bytes:
    """A file in the shape of lm-evaluation-harness 0.3."""
    revision = "" if step is None else f",revision=step{step}"
    document: dict[str, Any] = {
        "results": results or {"lambada_openai": {"acc": 0.5, "acc_stderr": 0.007, "ppl": 9.25, "ppl_stderr": 0.25}},
        "versions": dict.fromkeys(results or ["lambada_openai"], 0),
        "config": {
            "model": "hf-causal",
            "model_args": f"pretrained=our/model{revision}",
            "num_fewshot": 0,
            "batch_size": 16,
        },
    }
    return json.dumps(document).encode()


@pytest.fixture
def checkpoint_id(client: TestClient) -> str:
    client.post("/api/v1/projects", json={"name": "p"})
    run = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    made: str = client.post(f"/api/v1/runs/{run}/checkpoints", json={"step": 3000}).json()["id"]
    return made


def send(client: TestClient, *files: tuple[str, bytes], **form: str) -> Any:
    return client.post("/api/v1/imports", data=form, files=[("file", each) for each in files])


def scores_of(client: TestClient, checkpoint_id: str) -> dict[tuple[str, str], float]:
    items = client.get(f"/api/v1/checkpoints/{checkpoint_id}").json()["scores"]
    return {(item["benchmark"], item["metric"]): item["value"] for item in items}


def test_every_score_of_a_file_is_kept_with_its_error_and_setting(client: TestClient, checkpoint_id: str) -> None:
    answer = send(client, ("results.json", result_file()), checkpoint_id=checkpoint_id)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert (body["format"], body["imported"], body["recorded"], body["skipped"]) == ("lm-eval-v03", 2, 2, [])
    (file,) = body["files"]
    assert (file["file"], file["imported"], file["checkpoint_id"]) == ("results.json", 2, checkpoint_id)
    assert scores_of(client, checkpoint_id) == {("lambada_openai", "acc"): 0.5, ("lambada_openai", "ppl"): 9.25}
    score = next(
        each
        for each in client.get(f"/api/v1/checkpoints/{checkpoint_id}/scores").json()["items"]
        if each["metric"] == "acc"
    )
    assert (score["stderr"], score["version"], score["n_shot"], score["filter"]) == (0.007, "0", 0, "")
    assert score["harness"] == "lm-evaluation-harness"


def test_importing_again_adds_nothing(client: TestClient, checkpoint_id: str) -> None:
    for recorded in (2, 0, 0):
        body = send(client, ("results.json", result_file()), checkpoint_id=checkpoint_id).json()
        assert (body["imported"], body["recorded"]) == (2, recorded)
    assert len(client.get(f"/api/v1/checkpoints/{checkpoint_id}/scores").json()["items"]) == 2


def test_the_step_is_the_form_s_else_the_file_s(client: TestClient, checkpoint_id: str) -> None:
    found = send(client, ("results.json", result_file()), project="p", run="r").json()
    assert found["files"][0]["checkpoint_id"] == checkpoint_id
    other = send(client, ("results.json", result_file()), project="p", run="r", step="4000").json()
    made = client.get(f"/api/v1/checkpoints/{other['files'][0]['checkpoint_id']}").json()
    assert (made["checkpoint"]["step"], made["id"] == checkpoint_id) == (4000, False)


def test_project_run_and_checkpoint_are_made_where_they_are_missing_with_pieces_unknown(client: TestClient) -> None:
    body = send(client, ("results.json", result_file()), project="new", run="our model").json()
    made = client.get(f"/api/v1/checkpoints/{body['files'][0]['checkpoint_id']}").json()
    assert (made["project"], made["checkpoint"]["run"]["name"], made["checkpoint"]["step"]) == (
        "new",
        "our model",
        3000,
    )
    assert (made["state"], made["resumability"]) == ("committed", "unknown")
    assert set(made["pieces"].values()) == {"unknown"}
    assert made["saved_at_assumed"] is True
    assert len(made["scores"]) == 2


def test_a_file_that_says_no_step_needs_one(client: TestClient) -> None:
    refused = send(client, ("results.json", result_file(None)), project="new", run="r")
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/nothing-imported")
    assert "step" in refused.json()["errors"][0]["detail"]
    assert client.get("/api/v1/projects").json()["items"] == []
    assert send(client, ("results.json", result_file(None)), project="new", run="r", step="0").status_code == 200


def test_of_repeated_steps_the_live_one_is_meant(client: TestClient, checkpoint_id: str) -> None:
    run = client.get(f"/api/v1/checkpoints/{checkpoint_id}").json()["checkpoint"]["run"]["id"]
    client.post(f"/api/v1/runs/{run}/attempts", json={"resumed_from": {"step": 2000}})
    live = client.post(f"/api/v1/runs/{run}/checkpoints", json={"step": 3000}).json()["id"]
    assert client.get(f"/api/v1/checkpoints/{checkpoint_id}").json()["superseded"] is True
    body = send(client, ("results.json", result_file()), project="p", run="r").json()
    assert body["files"][0]["checkpoint_id"] == live


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", ""),
        (b"{", ""),
        (b"[1, 2]", ""),
        (b'{"results": {}}', ""),
        (b'{"results": {"a": {"acc": 0.5}}}', ""),
        (b"\xff\xfe", ""),
        (b"PK\x03\x04", ""),
        (b"[" * 10_000, ""),
        (json.dumps({"results": {"a": {}}, "versions": {}, "config": {}}).encode(), "no score"),
        (json.dumps({"results": {"a": {"acc": "N/A"}}, "versions": {"a": 0}, "config": {}}).encode(), "not zero"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(
    client: TestClient, checkpoint_id: str, content: bytes, said: str
) -> None:
    refused = send(client, ("odd.json", content), checkpoint_id=checkpoint_id)
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/nothing-imported"), refused.text
    problem = refused.json()
    assert "odd.json" in problem["detail"]
    assert problem["errors"][0]["pointer"] == "/file/0"
    assert said in problem["errors"][0]["detail"]
    assert len(problem["errors"][0]["detail"]) > 10
    assert scores_of(client, checkpoint_id) == {}


def test_one_bad_file_among_many_is_reported_and_the_others_are_imported(
    client: TestClient, checkpoint_id: str
) -> None:
    files = [
        ("first.json", result_file(piqa={"acc": 0.7})),
        ("broken.json", b'{"results": '),
        ("third.json", result_file(arc_easy={"acc": 0.6})),
    ]
    answer = send(client, *files, checkpoint_id=checkpoint_id)
    assert answer.status_code == 200
    body = answer.json()
    assert [(each["file"], each["format"], each["imported"]) for each in body["files"]] == [
        ("first.json", "lm-eval-v03", 1),
        ("broken.json", None, 0),
        ("third.json", "lm-eval-v03", 1),
    ]
    assert (body["imported"], [each["item"] for each in body["skipped"]]) == (2, ["broken.json"])
    assert body["skipped"][0]["reason"]
    assert scores_of(client, checkpoint_id) == {("piqa", "acc"): 0.7, ("arc_easy", "acc"): 0.6}


def test_a_thousand_files_at_once_give_one_summary_and_a_reason_for_each_refused(
    client: TestClient, checkpoint_id: str
) -> None:
    broken = {f"{number}.json" for number in range(0, 1000, 100)}
    files = [
        (name, b'{"results": ' if name in broken else result_file(**{f"task_{number}": {"acc": number / 1000}}))
        for number, name in ((number, f"{number}.json") for number in range(1000))
    ]
    body = send(client, *files, checkpoint_id=checkpoint_id).json()
    assert (body["imported"], len(body["files"])) == (990, 1000)
    assert {each["item"] for each in body["skipped"]} == broken
    assert all("no JSON" in each["reason"] for each in body["skipped"])
    kept = scores_of(client, checkpoint_id)
    assert len(kept) == 990
    assert kept["task_999", "acc"] == 0.999


def test_what_a_file_leaves_out_is_named_and_missing_is_not_zero(client: TestClient, checkpoint_id: str) -> None:
    content = result_file(piqa={"acc": 0.7}, odd={"acc": None, "other": True, "ppl": float("nan")})  # type: ignore[dict-item]
    body = send(client, ("results.json", content), checkpoint_id=checkpoint_id).json()
    assert {each["item"] for each in body["skipped"]} == {"odd.acc", "odd.other"}
    assert scores_of(client, checkpoint_id) == {("piqa", "acc"): 0.7, ("odd", "ppl"): "NaN"}


def test_files_of_many_steps_go_to_a_checkpoint_each(client: TestClient) -> None:
    steps = (0, 512, 143_000)
    files = [(f"{step}.json", result_file(step, piqa={"acc": 0.5 + step / 1e6})) for step in steps]
    body = send(client, *files, project="p", run="pythia").json()
    assert body["imported"] == 3
    listed = client.get("/api/v1/checkpoints", params={"fields": "scores.piqa", "order_by": "step"}).json()["items"]
    assert [(each["step"], each["values"]["scores.piqa"]) for each in listed] == [
        (step, 0.5 + step / 1e6) for step in steps
    ]


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({}, 422),
        ({"project": "p"}, 422),
        ({"run": "r"}, 422),
        ({"checkpoint_id": "nonsense"}, 404),
        ({"checkpoint_id": "0" * 13}, 404),
        ({"project": "a/b", "run": "r"}, 422),
        ({"project": "p", "run": "a\0b"}, 422),
        ({"project": "p", "run": "r", "step": "-1"}, 422),
        ({"project": "p", "run": "r", "step": "1.5"}, 422),
        ({"project": "p", "run": "r", "step": str(2**63)}, 422),
        ({"project": "p", "run": "r", "format": "x" * 65}, 422),
    ],
)
def test_a_target_that_is_none_is_refused_before_anything_is_written(
    client: TestClient, form: dict[str, str], status: int
) -> None:
    refused = send(client, ("results.json", result_file()), **form)
    assert refused.status_code == status, refused.text
    assert refused.headers["content-type"] == "application/problem+json"
    assert client.get("/api/v1/projects").json()["items"] == []


def test_an_unknown_format_is_refused_and_names_those_that_are_known(client: TestClient, checkpoint_id: str) -> None:
    refused = send(client, ("results.json", result_file()), checkpoint_id=checkpoint_id, format="nonsense")
    assert refused.status_code == 422
    assert "lm-eval-v03" in refused.json()["detail"]
    named = send(client, ("results.json", result_file()), checkpoint_id=checkpoint_id, format="lm-eval-v03")
    assert named.json()["imported"] == 2


def test_a_request_without_a_file_is_refused(client: TestClient, checkpoint_id: str) -> None:
    refused = client.post("/api/v1/imports", data={"checkpoint_id": checkpoint_id})
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"].endswith("/file")


def test_text_in_the_place_of_a_file_is_told_to_be_none(client: TestClient, checkpoint_id: str) -> None:
    part = 'Content-Disposition: form-data; name="{}"\r\n\r\n{}\r\n--x'
    body = "\r\n".join(["--x", part.format("file", "{}"), part.format("checkpoint_id", checkpoint_id) + "--", ""])
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    refused = client.post("/api/v1/imports", content=body, headers=headers)
    assert (refused.status_code, refused.json()["errors"]) == (
        422,
        [{"pointer": "/file/0", "detail": "expected a file: a part of the form with a file name"}],
    )


def test_two_targets_and_unknown_form_fields_are_refused(client: TestClient) -> None:
    client.post("/api/v1/checkpoints:batch", json=[{"project": "p", "run": "r", "step": 1}])
    (item,) = client.get("/api/v1/checkpoints").json()["items"]
    files = {"file": ("a.json", b"{}")}
    twice = client.post("/api/v1/imports", files=files, data={"checkpoint_id": item["id"], "project": "p", "run": "r"})
    assert (twice.status_code, twice.json()["type"]) == (422, "/problems/two-import-targets")
    typo = client.post("/api/v1/imports", files=files, data={"checkpoint_id": item["id"], "projct": "p"})
    assert (typo.status_code, typo.json()["errors"][0]["pointer"]) == (422, "/projct")


def test_a_file_or_a_project_of_too_many_benchmarks_is_refused_quickly(client: TestClient) -> None:
    target = {"project": "p", "run": "r", "step": "1"}

    def send(count: int) -> Any:
        results = {f"task{number}": {"acc": 0.5} for number in range(count)}
        body = json.dumps({"results": results, "versions": {}, "config": {"model": "x"}}).encode()
        return client.post("/api/v1/imports", files={"file": ("a.json", body)}, data=target)

    refused = send(60_000)
    assert refused.status_code == 422
    assert "50,000" in refused.text
    refused = send(20_001)
    assert (refused.status_code, "20000" in refused.text) == (422, True), refused.text[:300]
    assert client.get("/api/v1/checkpoints").json()["items"] == []


@pytest.mark.parametrize(
    ("kind", "shown"),
    [
        ("application/json", "'application/json'"),
        ("text/plain; charset=utf-8", "'text/plain'"),
        (None, "of no type"),
    ],
)
def test_a_body_that_is_no_form_with_files_is_told_what_to_send(
    client: TestClient, checkpoint_id: str, kind: str | None, shown: str
) -> None:
    headers = {} if kind is None else {"Content-Type": kind}
    refused = client.post("/api/v1/imports", content=result_file(), headers=headers)
    problem = refused.json()
    assert (refused.status_code, problem["type"]) == (415, "/problems/unsupported-media-type")
    for word in (shown, "multipart/form-data", "-F file=@", "cairn evals"):
        assert word in problem["detail"]
    assert scores_of(client, checkpoint_id) == {}
    client.headers.pop("Authorization")
    assert client.post("/api/v1/imports", content=result_file(), headers=headers).status_code == 401
