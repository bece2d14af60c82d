"""The real torchrun: workers that it forms anew are another attempt, recorded by the job itself."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cairn import Client
from cairn.spool.flush import flush

from tests.frameworks.service import address, running_service
from tests.ports import held_port

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
SCRIPT = Path(__file__).with_name("train_elastic.py")
SECONDS = 240


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    own = {"CAIRN_SPOOL": str(tmp_path / "spool"), "TMPDIR": str(tmp_path)}
    own |= {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    own["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"  # with it, a host that joins later waits for ever (torch 2.13)
    (tmp_path / "saves").mkdir()
    with address(tmp_path / "home") as found:
        for name, value in {**own, **found}.items():
            monkeypatch.setenv(name, value)
        with running_service({**own, **found}), Client() as client:
            yield client


def torchrun(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *arguments])


@pytest.fixture
def rendezvous() -> Iterator[int]:
    """The port at which hosts meet."""
    with held_port() as port:
        yield port


def test_a_failed_worker_and_a_host_that_joins_are_attempts_of_their_own(
    client: Client, tmp_path: Path, rendezvous: int
) -> None:
    saves = tmp_path / "saves"
    alone = ["--nnodes", "1", "--nproc-per-node", "1", "--max-restarts", "1", "--standalone"]
    assert torchrun(*alone, str(SCRIPT), str(saves), "1", "die").wait(SECONDS) == 0
    elastic = ["--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "0", "--rdzv-backend", "c10d"]
    elastic += [
        "--rdzv-endpoint",
        f"127.0.0.1:{rendezvous}",
        "--rdzv-id",
        "job-8",
        "--rdzv-conf",
        "last_call_timeout=1",
    ]
    hosts = [torchrun(*elastic, str(SCRIPT), str(saves), "2")]
    try:
        deadline = time.monotonic() + SECONDS
        while not (saves / "8").exists():
            assert time.monotonic() < deadline
            assert hosts[0].poll() is None
            time.sleep(0.05)
        hosts.append(torchrun(*elastic, str(SCRIPT), str(saves), "2"))
        assert [host.wait(SECONDS) for host in hosts] == [0, 0]
    finally:
        for host in hosts:
            host.terminate()
    flush(client)
    saved = [client.get_checkpoint(each) for each in client.iter_checkpoints(filter="project = 'llm'")]
    sizes = {each.attempt: each.raw["layout"]["world_size"] for each in saved}
    attempts = client.list_attempts(client.find_run("llm", "tiny"))
    reasons = [each.raw["reason"] or "" for each in attempts]
    assert sizes == {1: 1, 2: 1, 3: 1, 4: 2}
    assert "after a failure (restart 1)" in reasons[1]
    assert "torchrun formed" not in reasons[2]  # another job
    assert "membership change: torchrun formed 2 workers anew, 1 before" in reasons[3]
    assert attempts[3].raw["resumed_from"]["attempt"] == 3
