"""Drills over HTTP: statuses, shapes, pages, and whose project it is."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.db import Database
from registry.projects import create_project
from registry.tokens import issue_token
from registry.types import Scope
from tests.api.conftest import client_of

TIMES = {"started_at": "2026-11-20T10:00:00Z", "ended_at": "2026-11-20T10:03:00Z"}
SECONDS = {"read": 20.5, "verify": 6.0, "load": 30.0, "run": 4.0}


@pytest.fixture
def client(database: Database, tmp_path: Path) -> Iterator[TestClient]:
    with client_of(database, tmp_path) as client:
        yield client


@pytest.fixture
def checkpoint(client: TestClient) -> str:
    client.post("/api/v1/projects", json={"name": "p"})
    run = client.post("/api/v1/runs", json={"project": "p", "name": "r"}).json()["id"]
    series = [{"name": "loss", "steps": list(range(1, 41)), "values": [4 - 0.05 * step for step in range(1, 41)]}]
    body = {"step": 20, "replicas": [{"uri": "/mnt/20", "tier": "shared", "bytes": 1000}]}
    made: str = client.post(f"/api/v1/runs/{run}/checkpoints", json=body).json()["id"]
    assert client.post(f"/api/v1/runs/{run}/series", json=series).status_code < 300
    return made


def report(checkpoint: str, key: str = "k", **known: Any) -> dict[str, Any]:
    given = {"checkpoint_id": checkpoint, "key": key, "host": "node1", "verdict": "passed", **TIMES}
    return {**given, "seconds": SECONDS, "software": {"torch": "2.9"}, **known}


def test_a_drill_is_recorded_once_for_its_key(client: TestClient, checkpoint: str) -> None:
    first = client.post("/api/v1/drills", json=report(checkpoint, bytes_read=1000))
    assert first.status_code == 201, first.text
    told = first.json()
    assert (told["verdict"], told["exact"], told["steps_run"]) == ("passed", None, 0)
    assert told["seconds"] == {**SECONDS, "convert": None}
    assert set(told["checks"].values()) == {"not_tried"}
    assert told["checkpoint"]["id"] == checkpoint
    again = client.post("/api/v1/drills", json=report(checkpoint, bytes_read=1000))
    assert (again.status_code, again.json()) == (200, told)
    other = client.post("/api/v1/drills", json=report(checkpoint, bytes_read=1001))
    assert (other.status_code, other.json()["type"]) == (409, "/problems/drill-exists")
    assert client.get(f"/api/v1/drills/{told['id']}").json() == told


def test_plain_losses_are_of_the_next_steps_and_are_compared(client: TestClient, checkpoint: str) -> None:
    values = [4 - 0.05 * step for step in range(21, 31)]
    told = client.post("/api/v1/drills", json=report(checkpoint, losses=values, steps_run=10)).json()
    assert told["checks"]["continuation"] == "passed"
    assert told["losses"][0] == {"step": 21, "loss": values[0]}
    off = [{"step": 21 + place, "loss": value + 1} for place, value in enumerate(values)]
    told = client.post("/api/v1/drills", json=report(checkpoint, "off", losses=off, exact=True)).json()
    assert (told["verdict"], told["exact"], told["checks"]["continuation"]) == ("failed", False, "failed")
    gone = report(checkpoint, "nan", losses=[{"step": 21, "loss": "NaN"}], exact="unknown")
    told = client.post("/api/v1/drills", json=gone).json()
    assert (told["verdict"], told["losses"]) == ("failed", [{"step": 21, "loss": "NaN"}])


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"verdict": "perhaps"}, "/verdict"),
        ({"seconds": {"read": -1}}, "/seconds/read"),
        ({"ended_at": "2026-11-20T09:00:00Z"}, "/ended_at"),
        ({"verdict": "failed"}, "/reason"),
        ({"checks": {"read": "perfect"}}, "/checks/read"),
        ({"software": {"torch": 2}}, "/software/torch"),
        ({"tolerance": 0}, "/tolerance"),
        ({"colour": "red"}, "/colour"),
        ({"losses": [1.0, {"step": 22, "loss": 1.0}]}, ""),
    ],
)
def test_what_cannot_be_kept_is_refused_with_its_place(
    client: TestClient, checkpoint: str, change: dict[str, Any], pointer: str
) -> None:
    refused = client.post("/api/v1/drills", json=report(checkpoint, **change))
    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["pointer"] == pointer


def test_drills_are_listed_page_by_page(client: TestClient, checkpoint: str) -> None:
    made = [client.post("/api/v1/drills", json=report(checkpoint, f"k{each}")).json()["id"] for each in range(3)]
    run = client.get(f"/api/v1/checkpoints/{checkpoint}").json()["checkpoint"]["run"]["id"]
    for where in ({"checkpoint": checkpoint}, {"run": run}, {"project": "p"}, {}):
        found, asked = [], {**where, "limit": "2"}
        while asked is not None:
            page = client.get("/api/v1/drills", params=asked).json()
            found += [each["id"] for each in page["items"]]
            asked = {**where, "limit": "2", "cursor": page["next_cursor"]} if page["next_cursor"] else None
        assert sorted(found) == sorted(made)
        assert found == sorted(made, reverse=True)
    assert "losses" not in page["items"][0]


def test_what_is_not_there_is_404_and_what_is_not_ones_own_403(
    client: TestClient, checkpoint: str, database: Database
) -> None:
    made = client.post("/api/v1/drills", json=report(checkpoint)).json()["id"]
    nothing = "0" * 13
    assert client.get(f"/api/v1/drills/{nothing}").json()["type"] == "/problems/drill-not-found"
    assert client.post("/api/v1/drills", json=report(nothing)).status_code == 404
    assert client.get("/api/v1/drills", params={"checkpoint": nothing}).status_code == 404
    assert client.get("/api/v1/drills", params={"project": "nowhere"}).status_code == 404
    with database.write() as session:
        other = create_project(session, "other")[0]
        token = issue_token(session, "bound", Scope.WRITE, actor="test", project_ids=[other.id])
    bound = {"Authorization": f"Bearer {token}"}
    assert client.get(f"/api/v1/drills/{made}", headers=bound).status_code == 403
    assert client.post("/api/v1/drills", json=report(checkpoint, "x"), headers=bound).status_code == 403
    assert client.get("/api/v1/drills", headers=bound).json()["items"] == []
