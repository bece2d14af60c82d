"""A real service in a process of its own, over either database, for a benchmark to talk to."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import urllib3

from tests.databases import postgresql_server, run_sql


class Service:
    """Calls over one connection pool, on loopback."""

    def __init__(self, url: str, token: str, process: "subprocess.Popen[bytes]", ready_seconds: float) -> None:
        self.url, self.token, self.process, self.ready_seconds = url, token, process, ready_seconds
        # What PostgreSQL does by itself within a minute; until then its key checks follow plans of empty tables.
        self.analyse: Callable[[], None] = lambda: None
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._pool = urllib3.HTTPConnectionPool("127.0.0.1", int(url.rpartition(":")[2]), maxsize=32, headers=headers)

    def call(self, method: str, path: str, body: Any = None, fields: dict[str, str] | None = None) -> Any:
        return json.loads(self.fetch(method, path, body, fields))

    def fetch(self, method: str, path: str, body: Any = None, fields: dict[str, str] | None = None) -> bytes:
        """The whole answer as it came: what a caller makes of it is no time of the service."""
        raw = None if body is None else json.dumps(body).encode()
        query = f"?{urlencode(fields)}" if fields else ""
        answer = self._pool.request(method, f"/api/v1{path}{query}", body=raw, retries=False)
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status} {answer.data[:500]!r}")
        return answer.data

    @property
    def cpu_seconds(self) -> float:
        """What the service's process has used so far: on a shared machine it says more than the clock."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        """Memory of the service's process."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        raise RuntimeError("no VmRSS")


@contextmanager
def running(backend: str) -> Iterator[Service]:
    """A fresh service on SQLite or PostgreSQL."""
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as home:
        if backend == "postgresql":
            with postgresql_server() as url, process(home, url) as service:
                service.analyse = lambda: run_sql(url, "ANALYZE")
                yield service
        else:
            with process(home, None) as service:
                yield service


@contextmanager
def process(home: str, database_url: str | None) -> Iterator[Service]:
    """The service over its embedded database, or over one that is there already."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"CAIRN_HOME": home, "CAIRN_PORT": str(port)}
    if database_url:
        environment["CAIRN_DATABASE_URL"] = database_url
    with open(Path(home) / "log", "wb") as log:
        began = time.monotonic()
        command = [str(Path(sys.executable).with_name("cairn-server")), "serve"]
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                if urllib3.request("GET", f"{url}/health/ready", retries=False, timeout=1).status == 200:
                    break
            except urllib3.exceptions.HTTPError:
                pass
            if process.poll() is not None or time.monotonic() - began > 60:
                raise RuntimeError((Path(home) / "log").read_text()[-2000:])
            time.sleep(0.02)
        token = (Path(home) / "admin-token").read_text().strip()
        yield Service(url, token, process, time.monotonic() - began)
    finally:
        process.terminate()
        process.wait(30)


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def line(name: str, **figures: Any) -> None:
    """One JSON line of results."""
    rounded = {key: round(value, 2) if isinstance(value, float) else value for key, value in figures.items()}
    print(json.dumps({"benchmark": name, **rounded}), flush=True)


def median(values: Sequence[float]) -> float:
    return statistics.median(values)
