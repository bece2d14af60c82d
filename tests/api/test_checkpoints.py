"""Recording over HTTP: what is answered, and what is refused where."""

from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

FULL: dict[str, Any] = {
    "step": 41_000,
    "saved_at": "2026-11-01T10:00:00Z",
    "tokens_seen": 172_000_000_000,
    "epoch": 1,
    "loss": 1.75,
    "lr": 3e-4,
    "metrics": {"grad_norm": 0.5, "spike": "NaN"},
    "scores": [
        {"benchmark": "gsm8k", "metric": "exact_match,strict-match", "value": 0.52, "stderr": 0.0138, "n_shot": 8},
        {"benchmark": "wikitext", "metric": "word_perplexity,none", "value": 8.25},
    ],
    "data_version": {"name": "mix-v3", "mix": {"web": 0.7, "code": {"weight": 0.3, "tokens": 1000}}},
    "data_cursor": {"shard": 17, "offset": 1024},
    "code": {"commit": "0123abcd", "dirty": False, "remote": "https://git.example/llm"},
    "config": {"lr": 0.0003, "optimizer": {"betas": [0.9, 0.95]}},
    "environment": {"torch": "2.13.0"},
    "layout": {"world_size": 64, "tp": 4, "pp": 2, "dp": 8},
    "format": "torch-dcp",
    "pieces": {
        "weights": "present",
        "optimizer": {"state": "present", "evidence": "manifest"},
        "data_position": {"state": "present", "position_evidence": "state"},
    },
    "replicas": [{"uri": "/mnt/shared/run/step-41000", "tier": "shared", "bytes": 100_000_000_000}],
    "save_seconds": 41.5,
    "stall_seconds": 2.5,
    "tags": {"phase": "pretrain"},
}


@pytest.fixture
def run_id(client: TestClient) -> str:
    assert client.post("/api/v1/projects", json={"name": "llm"}).status_code == 201
    made = client.post("/api/v1/runs", json={"project": "llm", "name": "7b-v3", "config": {"lr": 1e-4}})
    assert made.status_code == 201
    run_id: str = made.json()["id"]
    return run_id


def register(client: TestClient, run_id: str, **body: Any) -> Any:
    return client.post(f"/api/v1/runs/{run_id}/checkpoints", json=body)


def test_everything_that_was_said_comes_back(client: TestClient, run_id: str) -> None:
    made = register(client, run_id, **FULL)
    assert made.status_code == 201, made.text
    found = client.get(f"/api/v1/checkpoints/{made.json()['id']}").json()
    said = made.json()
    assert {name: found[name] for name in said if name not in ("status", "warnings")} == {
        name: value for name, value in said.items() if name not in ("status", "warnings")
    }
    assert (said["status"], said["warnings"]) == ("created", [])
    assert found["checkpoint"] == {
        "id": found["id"],
        "project": "llm",
        "run": {"id": run_id, "name": "7b-v3"},
        "attempt": 1,
        "step": 41_000,
        "kind": "archive",
        "saved_at": "2026-11-01T10:00:00Z",
    }
    assert found["pieces"] == {
        "weights": "present",
        "optimizer": "present",
        "data_position": "present",
        "random_state": "unknown",
    }
    assert found["resumability"] == "resumable"
    assert found["piece_evidence"]["data_position"]["position_evidence"] == "state"
    assert found["metrics"] == {"grad_norm": 0.5, "spike": "NaN"}
    assert found["data_version"]["mix"]["code"] == {"weight": 0.3, "tokens": 1000}
    assert found["config"] == FULL["config"]
    assert found["layout"]["cp"] is None
    assert {(score["benchmark"], score["metric"], score["filter"]) for score in found["scores"]} == {
        ("gsm8k", "exact_match", "strict-match"),
        ("wikitext", "word_perplexity", ""),
    }
    assert found["replicas"][0]["managed"] is False


def test_the_same_again_is_200_and_other_content_is_409_with_the_fields(client: TestClient, run_id: str) -> None:
    first = register(client, run_id, **FULL)
    again = register(client, run_id, **FULL)
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    other = register(client, run_id, **{**FULL, "loss": 1.8, "tags": {}})
    assert other.status_code == 409
    assert other.headers["content-type"] == "application/problem+json"
    problem = other.json()
    assert problem["type"] == "/problems/checkpoint-exists"
    assert problem["fields"] == ["loss", "tags"]
    assert problem["checkpoint_id"] == first.json()["id"]


def test_a_commit_that_fails_is_never_answered_with_201(
    client: TestClient, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Session) -> None:
        raise OperationalError("COMMIT", {}, Exception("no space left on device"))

    path, body = f"/api/v1/runs/{run_id}/checkpoints", {"step": 1, "scores": {"gsm8k": 0.5}}
    with monkeypatch.context() as patch:
        patch.setattr(Session, "commit", fail)
        assert client.post(path, json=body).status_code == 503
        batch = [{"project": "p", "run": "other", "step": 1}]
        assert client.post("/api/v1/checkpoints:batch", json=batch).status_code == 503
    assert client.post(path, json=body).status_code == 201


def test_order_inside_sets_and_zones_of_times_are_the_same_content(client: TestClient, run_id: str) -> None:
    register(client, run_id, **FULL)
    turned = {**FULL, "scores": FULL["scores"][::-1], "saved_at": "2026-11-01T12:00:00+02:00", "epoch": 1.0}
    assert register(client, run_id, **turned).status_code == 200


def test_later_patches_and_scores_do_not_change_what_is_the_same(client: TestClient, run_id: str) -> None:
    made = register(client, run_id, **FULL).json()
    patched = client.patch(
        f"/api/v1/checkpoints/{made['id']}", json={"tags": {"phase": None, "best": "yes"}, "loss": 1.7}
    )
    assert patched.json()["tags"] == {"best": "yes"}
    assert patched.json()["loss"] == 1.7
    more = client.post(f"/api/v1/checkpoints/{made['id']}/scores", json=[{"benchmark": "mmlu", "value": 0.5}])
    assert more.json() == {"received": 1, "recorded": 1, "warnings": []}
    assert register(client, run_id, **FULL).status_code == 200


def test_a_pending_checkpoint_is_committed_by_its_registration_or_by_commit(client: TestClient, run_id: str) -> None:
    pending = register(client, run_id, step=10, state="pending").json()
    assert pending["state"] == "pending"
    done = register(client, run_id, step=10, loss=2.0)
    assert (done.status_code, done.json()["state"], done.json()["status"]) == (200, "committed", "committed")
    assert client.get(f"/api/v1/checkpoints/{pending['id']}").json()["loss"] == 2.0
    assert register(client, run_id, step=10, loss=2.0).status_code == 200
    other = register(client, run_id, step=20, state="pending").json()
    committed = client.post(f"/api/v1/checkpoints/{other['id']}/commit", json={"loss": "NaN"})
    assert (committed.json()["state"], committed.json()["loss"]) == ("committed", "NaN")
    assert client.post(f"/api/v1/checkpoints/{other['id']}/commit", json={"loss": "NaN"}).status_code == 200
    assert client.post(f"/api/v1/checkpoints/{other['id']}/commit", json={"loss": 3}).status_code == 409


def test_a_retry_of_the_pending_registration_after_the_commit_is_the_same_content(
    client: TestClient, run_id: str
) -> None:
    saving = {"step": 30, "state": "pending", "loss": 1.0, "saved_at": "2026-11-01T10:00:00Z"}
    identity = register(client, run_id, **saving).json()["id"]
    for _ in range(2):
        assert client.post(f"/api/v1/checkpoints/{identity}/commit", json={"loss": 1.2}).status_code == 200
        assert register(client, run_id, **saving).status_code == 200
        assert register(client, run_id, step=30, loss=1.2).status_code == 200
    assert client.get(f"/api/v1/checkpoints/{identity}").json()["loss"] == 1.2
    assert register(client, run_id, step=30, loss=1.3).status_code == 409


def test_an_empty_body_commits(client: TestClient, run_id: str) -> None:
    identity = register(client, run_id, step=30, state="pending").json()["id"]
    assert client.post(f"/api/v1/checkpoints/{identity}/commit").json()["state"] == "committed"


def test_a_batch_opens_attempts_one_after_the_other_and_never_by_a_typo(client: TestClient) -> None:
    def send(*items: dict[str, Any]) -> Any:
        return client.post("/api/v1/checkpoints:batch", json=[{"project": "p", "run": "r", **item} for item in items])

    assert send({"step": 1}, {"step": 2}).status_code == 200
    typo = send({"step": 3, "attempt": 8})
    assert (typo.status_code, typo.json()["errors"][0]["pointer"]) == (422, "/0/attempt")
    both = send({"step": 3, "attempt": 2}, {"step": 1, "loss": 3})
    assert (both.status_code, both.json()["errors"][0]["pointer"]) == (409, "/1/loss")
    assert send({"step": 2, "attempt": 2, "loss": 1}, {"step": 5, "attempt": 3}).status_code == 200
    listed = client.get("/api/v1/checkpoints", params={"filter": "superseded"}).json()["items"]
    assert [(item["attempt"], item["step"]) for item in listed] == [(1, 2)]


def test_numbers_of_a_config_come_back_as_they_were_written(client: TestClient, run_id: str) -> None:
    raw = (
        b'{"step": 5, "config": {"lr": 1.50, "steps": 1e2, "nul": "a\\u0000b", "big": 123456789012345678901234567890}}'
    )
    made = client.post(f"/api/v1/runs/{run_id}/checkpoints", content=raw)
    assert made.status_code == 201, made.text
    text = client.get(f"/api/v1/checkpoints/{made.json()['id']}").text
    assert '"lr":1.50,' in text
    assert '"steps":1e2}' in text
    assert '"nul":"a\\u0000b"' in text
    assert "123456789012345678901234567890" in text


def test_a_checkpoint_without_a_config_has_its_run_s(client: TestClient, run_id: str) -> None:
    made = register(client, run_id, step=1).json()
    assert client.get(f"/api/v1/checkpoints/{made['id']}").json()["config"] == {"lr": 0.0001}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"step": "5"}, "/step"),
        ({"step": True}, "/step"),
        ({"step": 5.5}, "/step"),
        ({"step": -1}, "/step"),
        ({"step": 2**63}, "/step"),
        ({}, "/step"),
        ({"step": 5, "colour": "red"}, "/colour"),
        ({"step": 5, "loss": True}, "/loss"),
        ({"step": 5, "loss": "nan"}, "/loss"),
        ({"step": 5, "saved_at": "2026-11-01T10:00:00"}, "/saved_at"),
        ({"step": 5, "saved_at": "2026-02-30T10:00:00Z"}, "/saved_at"),
        ({"step": 5, "saved_at": 1761991200}, "/saved_at"),
        ({"step": 5, "kind": "best"}, "/kind"),
        ({"step": 5, "pieces": {"weights": "maybe"}}, "/pieces/weights"),
        ({"step": 5, "tags": {"a": 1}}, "/tags/a"),
        ({"step": 5, "tags": {"a\0": "b"}}, "/tags"),
        ({"step": 5, "tags": {"a": "b\0"}}, "/tags/a"),
        ({"step": 5, "notes": "x" * 100_000}, "/notes"),
        (
            {"step": 5, "parents": [{"checkpoint_id": "nonsense", "relation": "merged_from"}]},
            "/parents/0/checkpoint_id",
        ),
        ({"step": 5, "scores": [{"benchmark": "b", "value": None}]}, "/scores"),
        ({"step": 5, "attempt": 0}, "/attempt"),
        ({"step": 5, "layout": {"tp": 0}}, "/layout/tp"),
        ({"step": 5, "save_seconds": -1}, "/save_seconds"),
    ],
)
def test_a_refused_value_is_named_and_nothing_is_written(
    client: TestClient, run_id: str, body: dict[str, Any], pointer: str
) -> None:
    answer = register(client, run_id, **body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert any(error["pointer"].startswith(pointer) for error in problem["errors"]), problem
    assert client.get("/api/v1/checkpoints").json()["items"] == []


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"step": 5, "loss": NaN}', "/loss"),
        (b'{"step": 5, "loss": 1e999}', "/loss"),
        (b'{"step": 5, "step": 6}', "/step"),
        (b'{"step": 5, "tags": {"a": "\\ud800"}}', "/tags/a"),
        (b'{"step": 5, ', "column"),
        (b"\xff\xfe", "UTF-8"),
        (b"", "column"),
        (b'{"step": 5, "config": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}", "deeper"),
    ],
)
def test_what_is_no_storable_json_is_400_with_its_place(client: TestClient, run_id: str, raw: bytes, said: str) -> None:
    answer = client.post(f"/api/v1/runs/{run_id}/checkpoints", content=raw)
    assert answer.status_code == 400, answer.text
    assert said in answer.text
    assert client.get("/api/v1/checkpoints").json()["items"] == []


def test_a_config_nested_1000_deep_is_refused(client: TestClient, run_id: str) -> None:
    for depth in (100, 400, 900, 1000):
        raw = b'{"step": 5, "config": ' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"
        answer = client.post(f"/api/v1/runs/{run_id}/checkpoints", content=raw)
        assert answer.status_code in (400, 422), (depth, answer.text[:200])
        assert "deep" in answer.json()["detail"]


def test_a_name_of_100_000_characters_is_refused(client: TestClient) -> None:
    client.post("/api/v1/projects", json={"name": "llm"})
    answer = client.post("/api/v1/runs", json={"project": "llm", "name": "x" * 100_000})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/name"
    assert len(answer.text) < 2_000


def test_a_batch_is_atomic_and_names_the_bad_item(client: TestClient) -> None:
    items: list[dict[str, Any]] = [{"project": "p", "run": "r", "step": step} for step in range(1000)]
    items[537]["step"] = -5
    answer = client.post("/api/v1/checkpoints:batch", json=items)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/537/step"
    assert client.get("/api/v1/projects").json()["items"] == []
    items[537]["step"] = 537
    answer = client.post("/api/v1/checkpoints:batch", json=items)
    assert answer.json()["accepted"] == 1000
    assert {each["status"] for each in answer.json()["results"]} == {"created"}
    again = client.post("/api/v1/checkpoints:batch", json=items).json()
    assert {each["status"] for each in again["results"]} == {"unchanged"}


def test_a_batch_in_conflict_keeps_nothing_and_names_each_conflict(client: TestClient) -> None:
    first = [{"project": "p", "run": "r", "step": 1, "loss": 1.0}]
    client.post("/api/v1/checkpoints:batch", json=first)
    mixed = [{"project": "p", "run": "r", "step": 2}, {"project": "p", "run": "r", "step": 1, "loss": 2.0}]
    answer = client.post("/api/v1/checkpoints:batch", json=mixed)
    assert answer.status_code == 409
    assert answer.json()["errors"][0]["pointer"] == "/1/loss"
    assert len(client.get("/api/v1/checkpoints").json()["items"]) == 1


def test_a_batch_may_come_as_lines(client: TestClient) -> None:
    raw = b'{"project": "p", "run": "r", "step": 1}\n{"project": "p", "run": "r", "step": 2, "state": "pending"}\n'
    headers = {"content-type": "application/x-ndjson"}
    answer = client.post("/api/v1/checkpoints:batch", content=raw, headers=headers)
    assert answer.json()["accepted"] == 2
    bad = client.post("/api/v1/checkpoints:batch", content=raw + b'{"step": NaN}', headers=headers)
    assert bad.status_code == 400
    assert bad.json()["errors"][0]["pointer"] == "/2/step"


def test_a_key_that_occurs_twice_in_a_batch_is_one_checkpoint(client: TestClient) -> None:
    item = {"project": "p", "run": "r", "step": 1}
    same = client.post("/api/v1/checkpoints:batch", json=[item, item]).json()["results"]
    assert [each["status"] for each in same] == ["created", "unchanged"]
    saving = {**item, "step": 2, "state": "pending"}
    both = client.post("/api/v1/checkpoints:batch", json=[saving, {**item, "step": 2}]).json()["results"]
    assert [each["status"] for each in both] == ["created", "committed"]
    assert (
        client.post("/api/v1/checkpoints:batch", json=[{**item, "step": 3}, {**item, "step": 3, "loss": 1}]).status_code
        == 409
    )


def test_repeated_steps_after_a_rollback_are_new_checkpoints(client: TestClient, run_id: str) -> None:
    first = register(client, run_id, step=1000).json()
    later = register(client, run_id, step=2000).json()
    attempt = client.post(f"/api/v1/runs/{run_id}/attempts", json={"resumed_from": first["id"], "reason": "spike"})
    assert (attempt.status_code, attempt.json()["number"]) == (201, 2)
    repeated = register(client, run_id, step=2000)
    assert repeated.status_code == 201
    assert client.get(f"/api/v1/checkpoints/{later['id']}").json()["superseded"] is True
    listed = client.get("/api/v1/checkpoints", params={"filter": "superseded"}).json()["items"]
    assert [item["id"] for item in listed] == [later["id"]]


def test_starting_over_at_0_on_a_run_with_checkpoints_is_409(client: TestClient, run_id: str) -> None:
    register(client, run_id, step=1000)
    refused = client.post(f"/api/v1/runs/{run_id}/attempts", json={})
    assert refused.status_code == 409
    assert refused.json()["type"] == "/problems/attempt-would-restart"
    assert client.post(f"/api/v1/runs/{run_id}/attempts", json={"restart": True}).json()["number"] == 2


def test_a_body_of_200_mb_is_413_before_it_is_read(client: TestClient, run_id: str) -> None:
    answer = client.post(
        f"/api/v1/runs/{run_id}/checkpoints", content=b" " * 1000, headers={"content-length": str(200 * 2**20)}
    )
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/body-too-large")


def test_a_body_without_a_length_is_cut_off_at_the_limit(client: TestClient, run_id: str) -> None:
    def endless() -> Any:
        for _ in range(100):
            yield b" " * 2**20

    answer = client.post(f"/api/v1/runs/{run_id}/checkpoints", content=endless())
    assert answer.status_code == 413


def test_series_come_back_exactly(client: TestClient, run_id: str) -> None:
    client.post(f"/api/v1/runs/{run_id}/attempts", json={})
    body = [{"name": "loss", "steps": [1, 5, 2**62], "values": [1.5, "NaN", "-Infinity"]}]
    for _ in range(2):
        assert client.post(f"/api/v1/runs/{run_id}/series", json=body).json() == {"points": 3}
    (curve,) = client.get(f"/api/v1/runs/{run_id}/series").json()["items"]
    assert curve == {"attempt": 1, "name": "loss", "steps": [1, 5, 2**62], "values": [1.5, "NaN", "-Infinity"]}
    bad = client.post(f"/api/v1/runs/{run_id}/series", json=[{"name": "loss", "steps": [5, 1], "values": [1, 2]}])
    assert bad.status_code == 422


def test_without_a_token_nothing_is_answered_but_health(client: TestClient) -> None:
    client.headers.pop("Authorization")
    for path in ("/api/v1/checkpoints", "/api/v1/projects", "/api/v1/runs"):
        answer = client.get(path)
        assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthenticated")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert client.get("/health/live").status_code == 200
    assert client.get("/health/ready").json()["status"] == "ready"


def test_a_further_copy_is_recorded_and_other_content_refused(client: TestClient, run_id: str) -> None:
    copy = {"uri": "s3://b/10", "tier": "object", "digest": {"algorithm": "sha256", "value": "aa" * 32}}
    place = f"/api/v1/checkpoints/{register(client, run_id, step=10, replicas=[copy]).json()['id']}/replicas"
    answered = client.post(place, json=[{"uri": "/mnt/10", "tier": "shared"}])
    assert answered.status_code == 200, answered.text
    assert {each["uri"] for each in answered.json()["replicas"]} == {"s3://b/10", "/mnt/10"}
    other = {"uri": "s3://c/10", "tier": "object", "digest": {"algorithm": "sha256", "value": "bb" * 32}}
    refused = client.post(place, json=[other])
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/replica-differs")
    assert refused.json()["errors"][0]["pointer"] == "/0/digest"
    assert client.post(place, json=[]).status_code == 422
