"""Standing watches and findings over the API: shapes, states, whose they are, and what is refused."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session
from starlette.testclient import TestClient

from api.looking import Lookout
from registry.aliases import move_alias
from registry.checkpoints.registration import ReplicaSpec
from registry.db import Database
from registry.evals.scores import NewScore
from registry.ids import to_text
from registry.models import WatchDue
from registry.tokens import issue_token
from registry.types import Scope
from registry.watches.look import close_look, look
from tests.api.conftest import client_of
from tests.client.until import until
from tests.factories import at, make_checkpoint, make_project, make_run


def gsm8k(value: float) -> NewScore:
    return NewScore("gsm8k", value, metric="exact_match", n_samples=1319)


@pytest.fixture
def run_id(database: Database) -> str:
    with database.write() as session:
        run = make_run(session, make_project(session, "p"), "r")
        for step, value in enumerate([0.6] * 6 + [0.5], 1):
            make_checkpoint(session, run, 1000 * step, scores=[gsm8k(value)])
        return to_text(run.id)


def looks(database: Database) -> None:
    with database.write() as session:
        for watch_id in session.scalars(select(WatchDue.watch_id).distinct()).all():
            close_look(session, look(session, watch_id))


def watch(client: TestClient, **body: Any) -> Any:
    return client.post("/api/v1/watches", json=body)


def test_a_watch_is_made_once_listed_and_ended(client: TestClient, run_id: str) -> None:
    made = watch(client, run_id=run_id, watch={"capability": "math"}, note="for the release")
    again = watch(client, run_id=run_id, watch={"capability": "math"})
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json()["id"] == again.json()["id"]
    assert (made.json()["watched"], made.json()["state"], made.json()["run"]["name"]) == ("math", "standing", "r")
    assert made.json()["created_by"] == "test-admin"
    (listed,) = client.get("/api/v1/watches", params={"run_id": run_id}).json()["items"]
    assert listed == again.json()
    ended = client.patch(f"/api/v1/watches/{made.json()['id']}", json={"state": "ended"})
    assert (ended.status_code, ended.json()["state"]) == (200, "ended")


def test_a_finding_opens_the_filled_in_rollback_and_is_acknowledged(
    client: TestClient, database: Database, run_id: str
) -> None:
    watch(client, run_id=run_id, watch={"benchmark": "gsm8k"})
    looks(database)
    (found,) = client.get("/api/v1/findings", params={"state": "open"}).json()["items"]
    assert found["checkpoint"]["step"] == 7000
    assert (found["from_step"], found["to_step"], found["kind"]) == (6000, 7000, "score")
    assert found["rollback"]["page"] == f"/rollback?run={run_id}&watch=gsm8k"
    answered = client.post("/api/v1/rollback", json=found["rollback"]["body"])
    assert (answered.status_code, answered.json()["onset"]["watch"]) == (200, "gsm8k")
    at = f"/api/v1/findings/{found['id']}"
    done = client.patch(at, json={"state": "acknowledged", "note": "shard 7"}).json()
    assert (done["state"], done["acknowledged_by"], done["note"]) == ("acknowledged", "test-admin", "shard 7")
    assert done["acknowledged_at"].endswith("Z")
    assert client.get(at).json() == done
    assert client.get("/api/v1/findings", params={"state": "open"}).json()["items"] == []
    assert client.patch(at, json={"note": None}).json()["note"] is None


def test_findings_are_paged(client: TestClient, database: Database, run_id: str) -> None:
    for body in ({"watch": {"benchmark": "gsm8k"}}, {"watch": {"capability": "math"}}, {}):
        watch(client, run_id=run_id, **body)
    looks(database)
    seen, cursor = [], None
    while True:
        query = {"limit": 2, "run_id": run_id} | ({"cursor": cursor} if cursor else {})
        page = client.get("/api/v1/findings", params=query).json()
        seen += [each["id"] for each in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == sorted(seen, reverse=True)
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"run_id": "RUN", "alias": "p/production"}, 422),
        ({"run_id": "RUN", "watch": {}}, 422),
        ({"run_id": "RUN", "watch": {"benchmark": "a", "capability": "b"}}, 422),
        ({"run_id": "RUN", "kind": "gradient"}, 422),
        ({"run_id": "RUN", "kind": "loss", "watch": {"benchmark": "gsm8k"}}, 422),
        ({"run_id": "RUN", "watch": {"benchmark": "gsm8k"}, "colour": "red"}, 422),
        ({"run_id": "0" * 13}, 404),
        ({"alias": "p/nowhere"}, 404),
        ({"alias": "nowhere/production"}, 404),
    ],
)
def test_a_watch_that_says_too_little_or_too_much_is_refused(
    client: TestClient, run_id: str, body: dict[str, Any], status: int
) -> None:
    given = {name: run_id if value == "RUN" else value for name, value in body.items()}
    refused = watch(client, **given)
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("body", [{"state": "withdrawn"}, {"state": None}, {"who": "me"}])
def test_a_finding_takes_only_what_a_person_may_say(
    client: TestClient, database: Database, run_id: str, body: dict[str, Any]
) -> None:
    watch(client, run_id=run_id)
    looks(database)
    (found,) = client.get("/api/v1/findings").json()["items"]
    assert client.patch(f"/api/v1/findings/{found['id']}", json=body).status_code == 422


def test_nothing_there_is_a_404(client: TestClient) -> None:
    for method, path, body in (
        ("GET", "/findings/0000000000000", None),
        ("PATCH", "/findings/0000000000000", {"state": "acknowledged"}),
        ("PATCH", "/watches/none", {"state": "ended"}),
    ):
        assert client.request(method, f"/api/v1{path}", json=body).status_code == 404


def test_a_token_of_another_project_sees_and_changes_nothing(
    database: Database, session: Session, client: TestClient, run_id: str, tmp_path: Path
) -> None:
    made = watch(client, run_id=run_id).json()["id"]
    looks(database)
    found = client.get("/api/v1/findings").json()["items"][0]["id"]
    other = make_project(session, "other")
    token = issue_token(session, "stranger", Scope.WRITE, actor="test", project_ids=[other.id])
    with client_of(database, tmp_path) as stranger:
        stranger.headers["Authorization"] = f"Bearer {token}"
        assert stranger.get("/api/v1/findings").json()["items"] == []
        assert stranger.get("/api/v1/watches").json()["items"] == []
        assert stranger.get(f"/api/v1/findings/{found}").status_code == 403
        assert stranger.patch(f"/api/v1/findings/{found}", json={"state": "acknowledged"}).status_code == 403
        assert stranger.patch(f"/api/v1/watches/{made}", json={"state": "ended"}).status_code == 403
        assert watch(stranger, run_id=run_id).status_code == 403
        assert stranger.get("/api/v1/findings", params={"project": "p"}).status_code == 403


def test_a_reader_may_not_stand_a_watch(database: Database, run_id: str, tmp_path: Path) -> None:
    with client_of(database, tmp_path, Scope.READ) as reader:
        assert watch(reader, run_id=run_id).status_code == 403
        assert reader.get("/api/v1/findings").status_code == 200


def test_the_serving_process_looks_by_itself(committed_database: Database) -> None:
    from registry.watches.findings import list_findings
    from registry.watches.standing import WatchSpec, stand_watch

    with committed_database.write() as session:
        run = make_run(session)
        stand_watch(session, run.project_id, WatchSpec(run_id=run.id), actor="ann")
        for step, value in enumerate([0.6] * 6 + [0.5], 1):
            make_checkpoint(session, run, 1000 * step, scores=[gsm8k(value)])

    def found() -> int:
        with committed_database.read() as session:
            return len(list_findings(session, None))

    lookout = Lookout(committed_database, every_seconds=0.01)
    lookout.start()
    try:
        until(found)
    finally:
        lookout.stop()
        lookout.join(60)
    assert not lookout.is_alive()
    assert found() == 1


def test_the_production_model_got_worse_at_math_yesterday_is_one_call(client: TestClient, database: Database) -> None:
    """Which version was last good, since when it fell, and what to serve instead: alias, watch, after."""
    with database.write() as session:
        run = make_run(session, make_project(session, "p"), "r")
        ids = []
        for step in range(1, 21):
            copy = ReplicaSpec(f"/ckpt/{step}", "shared", bytes=10**9)
            saved = at("2026-11-08") + timedelta(days=step)
            score = gsm8k(0.6 if step <= 16 else 0.5)
            known = {"scores": [score], "pieces": ["weights"], "saved_at": saved, "replicas": (copy,)}
            ids.append(make_checkpoint(session, run, 1000 * step, **known))
        move_alias(session, run.project_id, "production", ids[15], actor="ann")
        move_alias(session, run.project_id, "production", ids[19], actor="ann")
    question = {"alias": "p/production", "watch": {"capability": "math"}, "after": "2026-11-15T00:00:00Z"}
    found = client.post("/api/v1/rollback", json=question).json()
    assert found["mode"] == "production"
    assert (found["onset"]["established"], found["onset"]["after_step"]) == (True, 16_000)
    assert found["last_known_good"]["step"] == 16_000
    assert found["candidates"][0]["checkpoint"]["step"] <= 16_000
    assert {"alias_target", "p_bad", "time"} <= set(found["excluded_counts"])
    assert "Math" in found["sentence"] or "Fell by" in found["sentence"]
