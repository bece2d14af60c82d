"""A small real HTTP server on the loopback, for the answers that a healthy service never gives."""

import contextlib
import io
import json
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cairn import Client, Retries
from cairn.cli.app import run as run_cli

Cli = Callable[..., tuple[int, str, str]]
QUICK = Retries(count=4, wait_seconds=60.0, first_pause_seconds=0.01)


@dataclass
class Reply:
    """One scripted answer. `body` may be any value (sent as JSON) or bytes."""

    status: int = 200
    body: Any = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None  # bytes of the body after which the connection dies
    wait_seconds: float = 0.0
    drip_seconds: float = 0.0  # pause between single bytes
    hang_up: bool = False  # close without any answer


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class FaultServer:
    """Answers with `replies` in turn, the last one for ever; remembers what was asked."""

    url: str
    replies: list[Reply] = field(default_factory=list)
    seen: list[Seen] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)  # nothing is waited for any more
    _choosing: threading.Lock = field(default_factory=threading.Lock)

    def next_reply(self) -> Reply:
        with self._choosing:
            return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


def _handler(server_of: Callable[[], FaultServer]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            server_of().seen.append(Seen(self.command, self.path, dict(self.headers), body))
            self.answer(server_of().next_reply())

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_CONNECT = handle_any

        def answer(self, reply: Reply) -> None:
            server_of().ending.wait(reply.wait_seconds)
            if reply.hang_up:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return
            body = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.send_body(reply, body)

        def send_body(self, reply: Reply, body: bytes) -> None:
            try:
                for start in range(0, len(body), 1 if reply.drip_seconds else len(body) or 1):
                    if reply.cut_after is not None and start + 1 > reply.cut_after:
                        break
                    self.wfile.write(body[start:] if not reply.drip_seconds else body[start : start + 1])
                    self.wfile.flush()
                    server_of().ending.wait(reply.drip_seconds)
                if reply.cut_after is not None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                self.close_connection = True

        def log_message(self, *arguments: Any) -> None:
            """Nothing: the test's output is for its failures."""

    return Handler


class _QuietServer(ThreadingHTTPServer):
    """Ends with all its connections, so that no thread of it lives on into the next test."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self.connections: list[socket.socket] = []
        super().__init__(("127.0.0.1", 0), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def end(self) -> None:
        self.shutdown()
        for each in self.connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what these tests are about."""


def _serve() -> Iterator[FaultServer]:
    faults: list[FaultServer] = []
    http = _QuietServer(_handler(lambda: faults[0]))
    faults.append(FaultServer(f"http://127.0.0.1:{http.server_address[1]}"))
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield faults[0]
    faults[0].ending.set()
    http.end()
    thread.join()


@pytest.fixture
def faults() -> Iterator[FaultServer]:
    yield from _serve()


@pytest.fixture
def elsewhere() -> Iterator[FaultServer]:
    """A second host (another port is another origin), which must never see a token."""
    yield from _serve()


@pytest.fixture
def client(faults: FaultServer) -> Iterator[Client]:
    with Client(faults.url, "secret-token", timeout=60, retries=QUICK) as made:
        yield made


@pytest.fixture(autouse=True)
def _no_settings_of_the_person_who_runs_the_tests(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = tmp_path_factory.mktemp("home")
    own = [name for name in os.environ if name.startswith(("CAIRN_", "SLURM_"))]
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
    for name in (*own, *proxies, "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture(autouse=True)
def _no_signal_is_ignored() -> Iterator[None]:
    """As a shell in the foreground leaves them: under `nohup` or in a shell's background some are, and whatever a test
    starts would ignore them too."""
    ignored = [each for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_IGN]
    for each in ignored:
        signal.signal(each, signal.SIG_DFL)
    yield
    for each in ignored:
        signal.signal(each, signal.SIG_IGN)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    from tests.client.live import running_service

    with running_service(tmp_path_factory.mktemp("service")) as running:
        yield running


@pytest.fixture
def live(service: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """Finds URL and admin token as a job on the service's own machine does."""
    url, home = service
    monkeypatch.setenv("CAIRN_URL", url)
    monkeypatch.setenv("CAIRN_HOME", str(home))
    monkeypatch.setattr("cairn.identity.PROOF_SECONDS", 60.0)  # a busy machine may take longer than a user waits
    with Client(timeout=60, retries=Retries(count=0)) as client:
        yield client


@pytest.fixture
def project(live: Client, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^A-Za-z0-9]", "-", request.node.name)[:100]
    return live.create_project(name).name


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Runs one command line; gives its exit code, what it printed, and what it said aside."""
    monkeypatch.setattr("cairn.client.Retries", lambda: QUICK)  # repeats as often as ever, without the long pauses
    monkeypatch.setattr("cairn.cli.commands.resume.TIMEOUT_SECONDS", 60.0)

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = run_cli(list(arguments))
        return code, *capsys.readouterr()

    return call
