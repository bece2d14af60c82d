"""The admin token of this machine goes to its own service and to nobody else who listens."""

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import cairn
import pytest
from cairn import Client, Retries
from cairn.identity import Unproven

from tests.client.conftest import FaultServer, Reply
from tests.client.until import LATEST

ONCE = Retries(count=0)


@pytest.fixture(autouse=True)
def _a_busy_machine_proves_late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cairn.identity.PROOF_SECONDS", LATEST)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A CAIRN_HOME whose service is not running."""
    path = tmp_path / "admin-token"
    path.write_text("cairn_admin-secret\n")
    path.chmod(0o600)
    monkeypatch.setenv("CAIRN_HOME", str(tmp_path))
    return tmp_path


@contextmanager
def relay(target: str) -> Iterator[tuple[str, bytearray]]:
    """Listens, and passes every byte on to the real service and back; gives what callers said."""
    heard = bytearray()
    away = urlsplit(target)

    def pump(near: socket.socket) -> None:
        with near, socket.create_connection((away.hostname, away.port or 0), timeout=LATEST) as far, suppress(OSError):
            while True:
                for ready in select.select([near, far], [], [], LATEST)[0]:
                    said = ready.recv(65536)
                    if not said:
                        return
                    if ready is near:
                        heard.extend(said)
                    (far if ready is near else near).sendall(said)

    def accept() -> None:
        with suppress(OSError):
            while True:
                pumps.append(threading.Thread(target=pump, args=(listener.accept()[0],), daemon=True))
                pumps[-1].start()

    pumps: list[threading.Thread] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        accepting = threading.Thread(target=accept, daemon=True)
        accepting.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join(LATEST)
    for each in pumps:
        each.join(LATEST)


def test_the_service_itself_proves_who_it_is_and_gets_the_token(live: Client) -> None:
    assert list(live.list_projects()) == []
    live.close()  # and again, over a new connection
    assert list(live.list_projects()) == []


def test_whoever_listens_in_its_place_does_not_get_the_token(faults: FaultServer, home: Path) -> None:
    for reply in (Reply(200, {"proof": "0" * 64}), Reply(200, {"items": []}), Reply(404), Reply(200, b"x" * 100_000)):
        faults.replies, faults.seen = [reply], []
        with Client(faults.url) as client, pytest.raises(Unproven, match="not the service whose admin token") as caught:
            client.list_checkpoints()
        assert [each.path.partition("?")[0] for each in faults.seen] == ["/health/identity"], "and is not asked twice"
        assert "admin-secret" not in repr(faults.seen) + str(caught.value)


def test_whoever_passes_the_question_on_to_the_real_service_does_not_get_the_token(
    service: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    url, folder = service
    monkeypatch.setenv("CAIRN_HOME", str(folder))
    with relay(url) as (elsewhere, heard):
        with Client(elsewhere, retries=ONCE) as client, pytest.raises(Unproven):
            client.list_checkpoints()
        with Client(elsewhere, "told", retries=ONCE) as client, pytest.raises(cairn.Unauthenticated):
            client.list_checkpoints()  # the relay works, and a token that was given goes where it was told
    assert (folder / "admin-token").read_bytes().strip() not in heard
    assert b"Bearer told" in heard


def test_a_service_of_another_home_does_not_get_the_token(service: tuple[str, Path], home: Path) -> None:
    with Client(service[0]) as client, pytest.raises(Unproven):
        client.list_checkpoints()


def test_a_service_without_the_file_cannot_prove_itself(live: Client, service: tuple[str, Path]) -> None:
    file = service[1] / "admin-token"
    aside = file.rename(file.with_name("aside"))
    try:
        with pytest.raises(Unproven):
            live.list_checkpoints()
    finally:
        aside.rename(file)
    assert live.list_checkpoints()


@pytest.mark.parametrize(
    "slow",
    [Reply(200, {"proof": "0" * 64}, wait_seconds=600), Reply(200, {"proof": "0" * 3_000}, drip_seconds=0.05)],
    ids=["no answer", "one byte at a time"],
)
def test_a_listener_that_keeps_us_waiting_costs_no_more_than_the_timeout(
    faults: FaultServer, home: Path, slow: Reply
) -> None:
    faults.replies = [slow]
    started = time.monotonic()
    with (
        Client(faults.url, timeout=0.4, retries=ONCE) as client,
        pytest.raises(cairn.ConnectionFailed, match="in time"),
    ):
        client.list_checkpoints()
    assert time.monotonic() - started < LATEST
    assert "admin-secret" not in repr(faults.seen)


def test_a_service_that_is_just_starting_is_asked_again(faults: FaultServer, home: Path) -> None:
    faults.replies = [Reply(hang_up=True), Reply(404)]
    quick = Retries(count=2, first_pause_seconds=0.01)
    with Client(faults.url, timeout=LATEST, retries=quick) as client, pytest.raises(Unproven):
        client.list_checkpoints()
    assert len(faults.seen) == 2
