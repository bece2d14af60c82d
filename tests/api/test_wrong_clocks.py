"""Times that a wrong clock has said: a save of the year 2036 would be the newest until then."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from starlette.testclient import TestClient

from registry.checkpoints.placing import AHEAD
from registry.db import now
from tests.api.test_checkpoints import register, run_id

__all__ = ["run_id"]
FUTURE = "2096-01-02T03:04:05Z"


def refused_at(ask: Callable[[], Any], pointer: str) -> None:
    before = now()
    answer = ask()
    problem = answer.json()
    assert answer.status_code == 422, problem
    (error,) = problem["errors"]
    assert error["pointer"] == pointer
    assert FUTURE in problem["detail"]
    told = re.search(r"whose time is (\S+Z)", problem["detail"])
    assert told is not None, problem["detail"]
    second = timedelta(seconds=1)
    assert before - second <= datetime.fromisoformat(told[1]) <= now()


def test_a_save_far_ahead_is_refused_with_both_times(client: TestClient, run_id: str) -> None:
    refused_at(lambda: register(client, run_id, step=1, saved_at=FUTURE), "/saved_at")
    made = register(client, run_id, step=1, state="pending").json()["id"]
    refused_at(lambda: client.post(f"/api/v1/checkpoints/{made}/commit", json={"saved_at": FUTURE}), "/saved_at")
    items = [{"project": "llm", "run": "7b-v3", "step": step, "saved_at": FUTURE} for step in (2,)]
    refused_at(lambda: client.post("/api/v1/checkpoints:batch", json=items), "/0/saved_at")
    assert client.get("/api/v1/checkpoints").json()["items"][0]["state"] == "pending"


@pytest.mark.parametrize(("ahead", "status"), [(AHEAD - timedelta(minutes=1), 201), (AHEAD + timedelta(hours=1), 422)])
def test_clocks_may_differ_by_a_day(client: TestClient, run_id: str, ahead: timedelta, status: int) -> None:
    assert register(client, run_id, step=1, saved_at=(now() + ahead).isoformat()).status_code == status


def test_a_heartbeat_of_a_time_to_come_counts_as_now(client: TestClient, run_id: str) -> None:
    client.post(f"/api/v1/runs/{run_id}/attempts", json={"key": "a"})
    said = client.patch(f"/api/v1/runs/{run_id}/attempts/1", json={"heartbeat_at": FUTURE}).json()
    assert said["heartbeat_at"] < (now() + timedelta(minutes=1)).isoformat()
