"""POST /imports of files that hold several checkpoints or models, and of every format."""

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.db import Database
from tests.client.formats.evals import samples

JSON = samples.encoded
FILES: dict[str, tuple[str, bytes, int]] = {
    "lm-eval-v04": ("results.json", JSON(samples.lm_eval_v04()), 6),
    "lm-eval-markdown": ("table.md", samples.MARKDOWN.encode(), 7),
    "lm-eval-samples": ("samples_piqa_2026-01-21T03-44-18.jsonl", samples.SAMPLES, 1),
    "lighteval": ("results.json", JSON(samples.LIGHTEVAL), 4),
    "inspect-ai": ("log.eval", samples.inspect_archive(), 1),
    "trainer-state": ("trainer_state.json", JSON(samples.TRAINER_STATE), 6),
    "every-eval-ever": ("record.json", JSON(samples.EVERY_EVAL_EVER), 1),
    "dclm": ("evaluation.json", JSON(samples.DCLM), 6),
    "plain-table": ("t.tsv", b"task\tscore\npiqa\t0.5\n", 1),
}


def send(client: TestClient, *files: tuple[str, bytes], **form: str) -> Any:
    return client.post("/api/v1/imports", data=form, files=[("file", each) for each in files])


@pytest.mark.parametrize("format", FILES)
def test_every_format_is_imported_whatever_its_file_is_called(client: TestClient, format: str) -> None:
    name, content, count = FILES[format]
    form = {"project": "p", "run": "r"} | ({} if format == "trainer-state" else {"step": "77"})
    body = send(client, (name, content), **form).json()
    assert (body["format"], body["imported"]) == (format, count), body
    if format != "lm-eval-samples":
        assert send(client, ("x", content), **form).json()["recorded"] == 0
    items = client.get(f"/api/v1/checkpoints/{body['files'][0]['checkpoints'][0]['checkpoint_id']}").json()["scores"]
    assert items


def test_a_file_of_several_steps_answers_which_checkpoint_got_how_much(client: TestClient) -> None:
    body = send(client, ("trainer_state.json", JSON(samples.TRAINER_STATE)), project="p", run="r").json()
    (file,) = body["files"]
    assert file["checkpoint_id"] is None
    assert [(into["step"], into["imported"]) for into in file["checkpoints"]] == [(1000, 4), (2000, 2)]
    listed = client.get("/api/v1/checkpoints", params={"fields": "scores.eval.wer", "order_by": "step"}).json()["items"]
    assert [(each["step"], each["values"]["scores.eval.wer"]) for each in listed] == [(1000, 61.5), (2000, 48.25)]


def test_one_model_of_several_is_picked(client: TestClient) -> None:
    summary = ("summary.csv", samples.OPENCOMPASS.encode())
    refused = send(client, summary, project="p", run="r")
    assert refused.status_code == 422
    assert "say which one with `model`" in refused.json()["errors"][0]["detail"]
    body = send(client, summary, project="p", run="r", model="model-step2000-hf").json()
    assert [into["step"] for into in body["files"][0]["checkpoints"]] == [2000]
    assert body["imported"] == 2
    assert send(client, summary, project="p", run="r", model="a\0b").status_code == 422


def test_a_helm_run_comes_as_the_files_of_its_folder(client: TestClient) -> None:
    files = list(samples.HELM.items())
    body = send(client, *files, project="p", run="r").json()
    assert (body["format"], body["imported"]) == ("helm", 2)
    assert [(file["file"], file["imported"]) for file in body["files"]] == [
        (name, 2 if name.endswith("run_spec.json") else 0) for name, _ in files
    ]


def test_a_row_cannot_reach_into_another_project(client: TestClient, database: Database) -> None:
    other = send(client, ("a.csv", b"step,benchmark,value\n1,piqa,0.5\n"), project="other", run="r").json()
    theirs = other["files"][0]["checkpoint_id"]
    rows = f"checkpoint,benchmark,value\n{theirs},piqa,0.9\nother/r@1,piqa,0.9\n2,piqa,0.1\n".encode()
    body = send(client, ("b.csv", rows), project="p", run="r").json()
    assert body["imported"] == 1
    assert len(body["skipped"]) == 2
    scores = client.get(f"/api/v1/checkpoints/{theirs}").json()["scores"]
    assert [score["value"] for score in scores] == [0.5]


def test_comparability_is_kept_and_a_re_evaluation_stands_beside_the_first(client: TestClient) -> None:
    first = samples.lm_eval_v04()
    second = json.loads(json.dumps(first)) | {"date": first["date"] + 60, "chat_template_sha": "cc33"}
    for document in (first, second):
        body = send(client, ("r.json", JSON(document)), project="p", run="r").json()
    (into,) = body["files"][0]["checkpoints"]
    items = client.get(f"/api/v1/checkpoints/{into['checkpoint_id']}/scores").json()["items"]
    strict = [item for item in items if (item["benchmark"], item["filter"]) == ("gsm8k", "strict-match")]
    assert {item["comparability"]["chat_template_sha"] for item in strict} == {"bb22", "cc33"}
    assert {item["evaluated_at"] for item in strict} == {"2026-01-21T02:59:43.500000Z", "2026-01-21T03:00:43.500000Z"}
