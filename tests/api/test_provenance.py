"""GET /checkpoints/{id}/provenance and POST /suspects."""

from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.resume_points import ResumePoint
from registry.snapshots import CodeSpec, DataSpec, SourceSpec
from tests.factories import make_attempt, make_checkpoint, make_run


def test_the_chain_is_answered_as_json_and_as_a_section_of_a_model_card(client: TestClient, session: Session) -> None:
    run = make_run(session, name="base")
    data = DataSpec("pile", {"web": SourceSpec(0.9), "math": SourceSpec(0.1)})
    old = make_checkpoint(session, run, 100, data_version=data, tokens_seen=1000, config={"lr": 1.0})
    make_attempt(session, run, resumed_from=ResumePoint(checkpoint_id=old), command="torchrun train.py | tee log")
    new = make_checkpoint(
        session,
        run,
        200,
        data_version=DataSpec("swapped", {"swapped": SourceSpec(1.0)}),
        tokens_seen=3000,
        config={"lr": 1.0},
        code=CodeSpec("a" * 40, dirty=True, diff_digest="sha256:abc"),
    )
    answer = client.get(f"/api/v1/checkpoints/{to_text(new)}/provenance")
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found["tokens_by_source"] == {"swapped": 2000.0, "web": 900.0, "math": 100.0}
    assert [(each["came_from"], each["tokens"]) for each in found["stages"]] == [("resumed_from", 2000), (None, 1000)]
    assert found["config"] == {"lr": 1.0}
    assert [each["id"] for each in found["dirty"]] == [to_text(new)]
    assert [(each["child"], each["parent"]) for each in found["parents"]] == [(to_text(new), to_text(old))]
    for asked in ({"params": {"format": "markdown"}}, {"headers": {"Accept": "text/markdown"}}):
        page = client.get(f"/api/v1/checkpoints/{to_text(new)}/provenance", **asked)  # type: ignore[arg-type]
        assert page.headers["content-type"] == "text/markdown; charset=utf-8"
        assert page.text.startswith("## Provenance\n")
        assert "torchrun train.py \\| tee log" in page.text
        assert "ran with changes that no commit holds" in page.text


def test_a_form_that_is_not_known_is_refused(client: TestClient, session: Session) -> None:
    one = to_text(make_checkpoint(session))
    assert client.get(f"/api/v1/checkpoints/{one}/provenance", params={"format": "pdf"}).status_code == 422
    assert client.get("/api/v1/checkpoints/0000000000001/provenance").status_code == 404


def pair(session: Session) -> tuple[Any, list[str]]:
    run = make_run(session)

    def mmlu(value: float) -> NewScore:
        return NewScore("mmlu", value, metric="acc", n_samples=14042)

    config: dict[str, Any] = {"optimizer": {"lr": 1e-3}, "model": {"layers": 4}}
    return run, [
        to_text(make_checkpoint(session, run, 1, config=config, scores=[mmlu(0.6)])),
        to_text(
            make_checkpoint(
                session,
                run,
                2,
                config={"optimizer": {"lr": 5e-4}, "model": {"layers": 2}},
                scores=[mmlu(0.5)],
            )
        ),
        to_text(make_checkpoint(session, run, 3, scores=[mmlu(0.6)])),
    ]


def suspects(client: TestClient, made: list[str]) -> list[Any]:
    answer = client.post("/api/v1/compare", json={"baseline": made[0], "candidate": made[1]})
    found: list[Any] = answer.json()["suspects"]
    return found


def test_a_tested_suspect_is_shown_as_what_it_is(client: TestClient, session: Session) -> None:
    _, made = pair(session)
    lr, layers = "config.optimizer.learning_rate", "config.model.layers"
    assert [each["changes"] for each in suspects(client, made)] == [[lr], [layers]]
    said = {"baseline": made[0], "candidate": made[1]}
    cleared = said | {"changes": [lr], "verdict": "cleared", "note": "reverted for 500 steps"}
    assert client.post("/api/v1/suspects", json=cleared).status_code == 200
    first, last = suspects(client, made)
    assert (first["changes"], first["share"]) == ([layers], pytest.approx(1.0))
    assert (last["changes"], last["share"], last["strength"]) == ([lr], 0.0, "weak")
    assert (last["tested"]["verdict"], last["tested"]["note"]) == ("cleared", "reverted for 500 steps")
    confirmed = said | {"changes": [layers], "verdict": "confirmed", "branch": made[2]}
    assert client.post("/api/v1/suspects", json=confirmed).status_code == 200
    first = suspects(client, made)[0]
    assert (first["changes"], first["strength"], first["tested"]["branch"]) == ([layers], "strong", made[2])
    assert "confirmed" in first["reasons"][0]


def test_a_cause_is_confirmed_only_with_a_branch(client: TestClient, session: Session) -> None:
    _, made = pair(session)
    said = {"baseline": made[0], "candidate": made[1], "changes": ["config.model.layers"], "verdict": "confirmed"}
    for body in (said, said | {"branch": made[0]}, said | {"branch": to_text(make_checkpoint(session))}):
        answer = client.post("/api/v1/suspects", json=body)
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/branch-missing")
    assert client.post("/api/v1/suspects", json=said | {"branch": "0000000000001"}).status_code == 404
