"""What a call does when the other side is slow, broken, elsewhere or gone."""

import time
from typing import Any

import cairn
import pytest
from cairn import Client, Retries

from tests.client.conftest import FaultServer, Reply
from tests.client.until import LATEST
from tests.ports import held_port

RUN = {"id": "r1", "name": "a", "project": "p"}
PROBLEM = {"Content-Type": "application/problem+json"}


def problem(code: str, status: int, **more: Any) -> dict[str, Any]:
    return {"type": f"/problems/{code}", "title": code, "status": status, "detail": f"It is {code}.", **more}


def test_a_busy_service_is_asked_again_when_it_said(client: Client, faults: FaultServer) -> None:
    faults.replies = [
        Reply(503, problem("unavailable", 503), {**PROBLEM, "Retry-After": "1"}),
        Reply(429, problem("too-many-requests", 429), PROBLEM),
        Reply(200, RUN),
    ]
    started = time.monotonic()
    assert client.get_run("r1").name == "a"
    assert time.monotonic() - started >= 1.0
    assert len(faults.seen) == 3


def test_a_long_retry_after_is_handed_to_the_caller_at_once(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(429, problem("too-many-requests", 429), {**PROBLEM, "Retry-After": "3600"})]
    started = time.monotonic()
    with pytest.raises(cairn.TooManyRequests) as caught:
        client.get_run("r1")
    assert caught.value.retry_after == 3600
    assert time.monotonic() - started < LATEST
    assert len(faults.seen) == 1


def test_tries_are_bounded(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(503, problem("unavailable", 503), PROBLEM)]
    with pytest.raises(cairn.Unavailable):
        client.get_run("r1")
    assert len(faults.seen) == 5


def test_a_call_that_counts_each_time_is_not_repeated(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(503, problem("unavailable", 503), PROBLEM)]
    with pytest.raises(cairn.Unavailable):
        client.alias_rollback("p", "production")
    with pytest.raises(cairn.Unavailable):
        client.put_alias("p", "production", "c1", expected="c0")
    assert [seen.method for seen in faults.seen] == ["POST", "PUT"]


def test_a_registration_is_repeated_after_a_lost_connection(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(hang_up=True), Reply(201, {"id": "c1", "step": 5})]
    assert client.register_checkpoint("r1", 5).id == "c1"
    assert faults.seen[0].body == faults.seen[1].body


def test_a_new_attempt_is_repeated_under_the_same_key(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(hang_up=True), Reply(201, {"id": "a1", "number": 2})]
    assert client.start_attempt("r1", restart=True).number == 2
    assert faults.seen[0].json["key"] == faults.seen[1].json["key"]


def test_an_error_500_is_not_repeated_and_shows_what_was_said(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(500, b"<h1>Oops</h1>", {"Content-Type": "text/html"})]
    with pytest.raises(cairn.CairnError, match=r"answered 500.* It said <h1>Oops</h1>") as caught:
        client.get_run("r1")
    assert caught.value.status == 500
    assert len(faults.seen) == 1


def test_a_cut_answer_is_no_answer(faults: FaultServer) -> None:
    faults.replies = [Reply(200, RUN, cut_after=10, drip_seconds=0.001)]
    with (
        Client(faults.url, "t", timeout=LATEST, retries=Retries(count=0)) as client,
        pytest.raises(cairn.ConnectionFailed, match="cut off after 10 bytes"),
    ):
        client.get_run("r1")


def test_a_cut_answer_of_a_reading_call_is_fetched_again(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(200, RUN, cut_after=10, drip_seconds=0.001), Reply(200, RUN)]
    assert client.get_run("r1").name == "a"


@pytest.mark.parametrize(
    "slow",
    [Reply(200, RUN, wait_seconds=600.0), Reply(200, {**RUN, "kind": "x" * 30_000}, drip_seconds=0.02)],
    ids=["no answer", "one byte at a time"],
)
def test_a_slow_service_costs_no_more_than_the_timeout(faults: FaultServer, slow: Reply) -> None:
    faults.replies = [slow]
    started = time.monotonic()
    with (
        Client(faults.url, "t", timeout=0.4, retries=Retries(count=0)) as client,
        pytest.raises(cairn.ConnectionFailed, match="in time"),
    ):
        client.get_run("r1")
    assert time.monotonic() - started < LATEST


def test_nobody_there_says_where_and_what_to_check() -> None:
    with (
        held_port() as port,
        Client(f"http://127.0.0.1:{port}", "t", retries=Retries(count=1, first_pause_seconds=0.01)) as client,
        pytest.raises(cairn.ConnectionFailed, match=f"Nobody answers at http://127.0.0.1:{port}") as caught,
    ):
        client.get_run("r1")
    assert caught.value.status == 0


def test_the_token_does_not_follow_a_redirect_to_another_host(
    client: Client, faults: FaultServer, elsewhere: FaultServer
) -> None:
    elsewhere.replies = [Reply(200, RUN)]
    for status in (301, 302, 303, 307, 308):
        faults.replies = [Reply(status, headers={"Location": f"{elsewhere.url}/api/v1/runs/r1"})]
        with pytest.raises(cairn.ConnectionFailed, match="token was not sent there") as caught:
            client.get_run("r1")
        assert "secret-token" not in str(caught.value)
    assert elsewhere.seen == []
    assert faults.seen[0].headers["Authorization"] == "Bearer secret-token"


def test_a_redirect_on_the_same_host_is_followed(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(307, headers={"Location": "/moved/r1"}), Reply(200, RUN)]
    assert client.get_run("r1").id == "r1"
    assert faults.seen[1].path == "/moved/r1"


def test_a_circle_of_redirects_ends(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(307, headers={"Location": "/api/v1/runs/r1"})]
    with pytest.raises(cairn.ConnectionFailed, match="circle"):
        client.get_run("r1")


def test_a_post_is_not_turned_into_a_get_by_a_redirect(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(302, headers={"Location": "/elsewhere"})]
    with pytest.raises(cairn.ConnectionFailed, match="redirects a POST"):
        client.create_project("p")
    assert len(faults.seen) == 1


@pytest.mark.parametrize("body", [b"<html>hello</html>", b'"text"', b"[1]", b"{}", b""])
def test_an_answer_of_some_other_server_is_refused(client: Client, faults: FaultServer, body: bytes) -> None:
    faults.replies = [Reply(200, body, {"Content-Type": "text/html"})]
    with pytest.raises(cairn.ConnectionFailed):
        client.get_run("r1")


def test_a_forked_client_opens_its_own_connection(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(200, RUN)]
    client.get_run("r1")
    before = client._transport._pool
    client._transport._pid -= 1  # what a child process would find
    client.get_run("r1")
    assert client._transport._pool is not before
    before.clear()


def test_a_name_cannot_lead_to_another_path(client: Client, faults: FaultServer) -> None:
    faults.replies = [Reply(200, {"id": "c"})]
    client.get_checkpoint("../tokens?x#y")
    assert faults.seen[0].path == "/api/v1/checkpoints/..%2Ftokens%3Fx%23y"
    with pytest.raises(cairn.Invalid):
        client.get_checkpoint("..")
