"""Decision records: the answer as it was, under a link."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from registry.checkpoints.registration import ParentSpec
from registry.db import Database
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.tokens import issue_token
from registry.types import Relation, Scope
from tests.api.conftest import client_of
from tests.factories import make_checkpoint, make_project, make_run, make_score


def mmlu(value: float) -> NewScore:
    return NewScore("mmlu", value, metric="acc", n_samples=14042)


def compared(session: Session) -> dict[str, str]:
    run = make_run(session)
    old, new = (make_checkpoint(session, run, step, scores=[mmlu(value)]) for step, value in ((1, 0.6), (2, 0.5)))
    return {"baseline": to_text(old), "candidate": to_text(new)}


def keep(client: TestClient, kind: str, request: dict[str, Any], **known: Any) -> Any:
    return client.post("/api/v1/decisions", json={"kind": kind, "request": request, **known})


def test_a_kept_answer_stays_as_it_was_when_the_scores_change(client: TestClient, session: Session) -> None:
    request = compared(session)
    before = client.post("/api/v1/compare", json=request).json()
    kept = keep(client, "compare", request, note="why we rolled back")
    assert kept.status_code == 201, kept.text
    row = kept.json()
    make_score(session, int_of(request["candidate"]), "mmlu", 0.7, metric="acc", n_samples=14042)
    assert client.post("/api/v1/compare", json=request).json() != before
    found = client.get(f"/api/v1/decisions/{row['id']}").json()
    assert found == row
    assert (found["answer"], found["request"], found["note"]) == (before, request, "why we rolled back")
    assert found["url"].endswith(f"/decisions/{row['id']}")


def test_a_kept_answer_stays_as_it_was_whatever_else_is_recorded_later(client: TestClient, session: Session) -> None:
    project = make_project(session)
    source = make_checkpoint(session, make_run(session, project), 1, scores=[mmlu(0.6)], config={"lr": 1})
    parents = [ParentSpec(source, Relation.QUANTISED)]
    made = make_checkpoint(
        session, make_run(session, project), 1, scores=[mmlu(0.5)], config={"lr": 2}, parents=parents
    )
    request = {"baseline": to_text(source), "candidate": to_text(made)}
    row = keep(client, "compare", request).json()
    assert row["answer"]["lineage_why"] == "the candidate was quantised from the baseline"
    assert [each["changes"] for each in row["answer"]["suspects"]] == [
        ["lineage.quantised_from"],
        ["config.learning_rate"],
    ]
    cleared = request | {"changes": ["lineage.quantised_from"], "verdict": "cleared"}
    assert client.post("/api/v1/suspects", json=cleared).status_code == 200
    own = {"capability": "math", "chance": 0.0, "direction": "lower"}
    assert client.put(f"/api/v1/projects/{project.name}/benchmarks/mmlu", json=own).status_code in (200, 201)
    patched = client.patch(
        f"/api/v1/checkpoints/{request['candidate']}",
        json={"milestone": True, "notes": "later"},
        headers={"Content-Type": "application/merge-patch+json"},
    )
    assert patched.status_code == 200, patched.text
    assert client.post("/api/v1/compare", json=request).json() != row["answer"]
    assert client.get(f"/api/v1/decisions/{row['id']}").json() == row


def int_of(text: str) -> int:
    from registry.ids import from_text

    number = from_text(text)
    assert number is not None
    return number


def test_a_rollback_and_a_search_are_kept_too(client: TestClient, session: Session) -> None:
    project = make_project(session)
    run = make_run(session, project)
    make_checkpoint(session, run, 1, scores=[mmlu(0.6)])
    rollback = keep(client, "rollback", {"run_id": to_text(run.id), "at_or_before_step": 10})
    assert rollback.status_code == 201, rollback.text
    assert {"candidates", "excluded"} <= rollback.json()["answer"].keys()
    search = keep(client, "search", {"query": "mmlu > 0.5", "project": project.name})
    assert search.status_code == 201, search.text
    assert search.json()["answer"]["population"]["size"] >= 0
    listed = client.get("/api/v1/decisions", params={"limit": 1}).json()
    assert [each["kind"] for each in listed["items"]] == ["search"]
    more = client.get("/api/v1/decisions", params={"limit": 1, "cursor": listed["next_cursor"]}).json()
    assert [each["kind"] for each in more["items"]] == ["rollback"]


@pytest.mark.parametrize(
    ("kind", "request_", "pointer"),
    [
        ("compare", {"baseline": "x"}, "/request/baseline"),
        ("compare", {"baseline": "0000000000001", "candidate": "0000000000001", "more": 1}, "/request/more"),
        ("search", {"query": "strong math"}, "/request/project"),
        ("guess", {}, "/kind"),
    ],
)
def test_a_question_that_its_own_route_would_refuse_is_refused_here(
    client: TestClient, kind: str, request_: dict[str, Any], pointer: str
) -> None:
    answer = keep(client, kind, request_)
    assert answer.status_code == 422
    assert pointer in {each["pointer"] for each in answer.json()["errors"]}


def test_a_record_is_read_only_by_who_may_see_every_project_in_it(
    database: Database, session: Session, tmp_path: Path
) -> None:
    one, two = make_run(session), make_run(session)
    old, new = make_checkpoint(session, one, scores=[mmlu(0.6)]), make_checkpoint(session, two, scores=[mmlu(0.5)])
    with client_of(database, tmp_path) as client:
        row = keep(client, "compare", {"baseline": to_text(old), "candidate": to_text(new)}).json()
        for project_id, status in ((one.project_id, 403), (two.project_id, 403)):
            token = issue_token(session, f"bound {project_id}", Scope.READ, project_ids=[project_id], actor="test")
            session.flush()
            bound = {"Authorization": f"Bearer {token}"}
            assert client.get(f"/api/v1/decisions/{row['id']}", headers=bound).status_code == status
            assert client.get("/api/v1/decisions", headers=bound).json()["items"] == []
        assert client.get("/api/v1/decisions/0000000000001").status_code == 404
