"""`cairn link` and `cairn import mlflow` against scripted answers: what is sent, what is shown, how it ends."""

import json
from typing import Any

import pytest
from cairn import Client

from tests.client.conftest import Cli, FaultServer, Reply

RUN = {"id": "0r1", "project": "p", "name": "a"}
LINK = {
    "id": "0l1",
    "run": {"id": "0r1", "name": "a"},
    "kind": "mlflow",
    "uri": "https://m",
    "run_id": "abc",
    "state": "refused",
    "error": "it asks for credentials",
    "push_state": "off",
    "synced_at": None,
}
FIELD = {
    "field": "owner",
    "here": "joe",
    "agree": False,
    "paths": [],
    "said": [{"link": "0l1", "kind": "mlflow", "value": "jane", "applied": False}],
}
LINKS = {"items": [LINK], "next_cursor": None, "fields": [FIELD]}


def job(state: str, **more: Any) -> dict[str, Any]:
    progress = {"done": 1, "total": 2, "text": "1 of 2"}
    return {"id": "0j1", "project": "e", "kind": "tracker.import", "state": state, "progress": progress, **more}


@pytest.fixture(autouse=True)
def _the_service_is_the_fault_server(faults: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAIRN_URL", faults.url)
    monkeypatch.setenv("CAIRN_TOKEN", "secret-token")


def test_link_sends_the_address_and_shows_how_the_links_stand(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body=RUN), Reply(201, LINK), Reply(body=LINKS)]
    code, out, err = cli("link", "0r1", "https://m/#/experiments/1/runs/abc")
    assert code == 0
    assert (faults.seen[1].method, faults.seen[1].path) == ("POST", "/api/v1/runs/0r1/trackers")
    assert faults.seen[1].json == {"url": "https://m/#/experiments/1/runs/abc"}
    assert "refused" in out
    assert "it asks for credentials" in out
    assert "owner: here 'joe'; mlflow says 'jane'" in err


def test_link_by_a_bare_id_names_kind_and_address(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body=RUN), Reply(201, LINK), Reply(body=LINKS)]
    cli("link", "0r1", "abc", "--kind", "mlflow", "--uri", "https://m")
    assert faults.seen[1].json == {"kind": "mlflow", "run_id": "abc", "uri": "https://m"}


def test_links_are_read_now_and_taken_away(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body=RUN), Reply(204), Reply(body=LINKS), Reply(202, job("waiting"))]
    assert cli("link", "0r1", "--remove", "0l9", "--refresh")[0] == 0
    asked = [(seen.method, seen.path) for seen in faults.seen[1:]]
    assert asked == [
        ("DELETE", "/api/v1/runs/0r1/trackers/0l9"),
        ("GET", "/api/v1/runs/0r1/trackers"),
        ("POST", "/api/v1/runs/0r1/trackers/0l1/refresh"),
    ]


def test_a_run_without_links_is_no_result(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(body=RUN), Reply(body={"items": [], "next_cursor": None, "fields": []})]
    code, _, err = cli("link", "0r1")
    assert code == 1
    assert "has no links" in err


def test_an_import_is_followed_to_its_end_and_reports_what_was_left_out(cli: Cli, faults: FaultServer) -> None:
    skipped = {"nobody says its step": {"count": 2, "examples": ["final", "last"]}}
    report = {"runs": 3, "checkpoints_created": 60, "skipped": skipped, "notes": ["joined to a"]}
    faults.replies = [
        Reply(201, {"id": "0p1", "name": "e"}),
        Reply(202, job("waiting")),
        Reply(body=job("waiting", error="it does not answer")),
        Reply(body=job("running")),
        Reply(body=job("done", report=report)),
    ]
    code, out, err = cli("import", "mlflow", "--experiment", "e", "--uri", "https://m")
    assert code == 0
    assert faults.seen[1].json == {"kind": "mlflow", "project": "e", "uri": "https://m", "experiment": "e"}
    assert "checkpoints_created\t60" in out
    assert "waiting: it does not answer" in err
    assert "Left out 2 × nobody says its step: final; last" in err
    assert "joined to a" in err


def test_an_import_that_failed_says_why_and_is_no_success(cli: Cli, faults: FaultServer) -> None:
    failed = job("failed", error="not among the hosts", error_code="tracker-host-not-allowed")
    faults.replies = [Reply(201, {"id": "0p1", "name": "p"}), Reply(202, job("waiting")), Reply(body=failed)]
    code, _, err = cli("import", "mlflow", "--experiment", "e", "--project", "p")
    assert code == 3
    assert "tracker-host-not-allowed: not among the hosts" in err


def test_an_import_need_not_be_waited_for(cli: Cli, faults: FaultServer) -> None:
    faults.replies = [Reply(201, {"id": "0p1", "name": "e"}), Reply(202, job("waiting"))]
    code, _, err = cli("import", "mlflow", "--experiment", "e", "--no-wait")
    assert code == 0
    assert "cairn import job 0j1" in err
    faults.replies = [Reply(body=job("done", report={}))]
    assert json.loads(cli("import", "job", "0j1", "--json")[1])["state"] == "done"


def test_waiting_for_a_job_ends_with_the_time_that_was_given(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(body=job("running"))]
    assert client.wait_for_job("0j1", timeout=0.0).state == "running"
    assert len(faults.seen) == 1


def test_tracking_is_read_and_changed(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(body={"push_mlflow": True, "push_wandb": False, "refresh_seconds": 600})]
    assert client.tracking("p").push_mlflow
    client.tracking("p", push_mlflow=True, best_by=None)
    assert [seen.method for seen in faults.seen] == ["GET", "PATCH"]
    assert faults.seen[1].json == {"push_mlflow": True, "best_by": None}
    faults.replies = [Reply(body={"items": [job("done")], "next_cursor": None})]
    assert [each.id for each in client.list_jobs(project="p")] == ["0j1"]
    faults.replies = [Reply(body=job("cancelled"))]
    assert client.cancel_job("0j1").has_ended
