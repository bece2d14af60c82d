"""A service that does not answer, or behind a proxy that answers for it: the watcher waits, and ends when told to."""

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cairn import Client, Retries
from cairn.watch import Watched, Watcher, watch

from tests.client.scan.trees import LONG_AGO, trainer
from tests.client.until import LATEST
from tests.client.watch.looks import identities, kinds


class _Rollout(BaseHTTPRequestHandler):
    """What a proxy says while it has no route to the service."""

    def _answer(self) -> None:
        self.send_response(404)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "19")
        self.end_headers()
        self.wfile.write(b"404 page not found\n")

    do_GET = do_POST = do_PATCH = _answer

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def proxy() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Rollout) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_a_proxy_that_answers_404_for_the_service_is_waited_for(
    live: Client, project: str, proxy: str, tmp_path: Path
) -> None:
    trainer(tmp_path / "ckpt/checkpoint-10", 10, at=LONG_AGO)
    what = Watched(str(tmp_path / "ckpt"), project, "r", "shared", 0.0)
    stop = threading.Event()
    with Watcher(what, tmp_path / "watch.db") as watcher:
        with Client(proxy, "t", retries=Retries(count=0)) as client:
            away = watch(watcher, client, stop, poll_seconds=0.1)
            assert next(away).kind == "away"
            stop.set()
            assert list(away) == []
        assert kinds(list(watcher.look(live))) == ["recorded", "curves"]
    assert identities(live, project) == [("r", 1, 10, "committed")]


def test_it_ends_when_told_to_while_the_service_hangs(tmp_path: Path) -> None:
    trainer(tmp_path / "ckpt/checkpoint-10", 10, at=LONG_AGO)
    command = [sys.executable, "-c", "import sys; from cairn.cli import main; sys.exit(main())", "watch"]
    with closing(socket.create_server(("127.0.0.1", 0))) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        environ = {**os.environ, "CAIRN_URL": url, "CAIRN_TOKEN": "t"}
        options = [str(tmp_path / "ckpt"), "--run", "p/r", "--tier", "shared"]
        with subprocess.Popen([*command, *options], env=environ, stderr=subprocess.DEVNULL) as process:
            silent.settimeout(LATEST)
            connection, _ = silent.accept()
            process.send_signal(signal.SIGTERM)
            code = process.wait(LATEST)  # a call is given up after five seconds, and nothing answers for ever
            connection.close()
    assert code == 0
