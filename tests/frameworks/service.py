"""The real service beside the frameworks: a process of the environment that has it, `.venv`."""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import urllib3

from tests.ports import held_port

SERVER = Path(__file__).parents[2] / ".venv" / "bin" / "cairn-server"


@contextmanager
def address(home: Path) -> Iterator[dict[str, str]]:
    """The environment in which a training on this machine finds a service that keeps its data in `home`, at a port
    that stays free until the service listens."""
    with held_port() as port:
        own = {"CAIRN_HOME": str(home), "CAIRN_PORT": str(port), "CAIRN_HOST": "127.0.0.1"}
        yield own | {"CAIRN_URL": f"http://127.0.0.1:{port}"}


@contextmanager
def running_service(own: dict[str, str]) -> Iterator[None]:
    """Skips where the service is not set up."""
    if not SERVER.exists():
        pytest.skip("the service is not set up: make setup")
    home = Path(own["CAIRN_HOME"])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRN_", "XDG_"))}
    home.mkdir(parents=True, exist_ok=True)
    with open(home / "log", "wb") as log:
        process = subprocess.Popen([str(SERVER), "serve"], env=kept | own, stdout=log, stderr=log)
    try:
        _wait(process, f"{own['CAIRN_URL']}/health/ready", home / "log")
        yield
    finally:
        process.terminate()
        process.wait(120)


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            if urllib3.request("GET", url, retries=False, timeout=1).status == 200:
                return
        except urllib3.exceptions.HTTPError:
            pass
        assert process.poll() is None, log.read_text()[-2000:]
        assert time.monotonic() < deadline, "the service did not get ready"
        time.sleep(0.05)
