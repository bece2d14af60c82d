"""What a failed job has left running ends before it is started again, and nothing else does."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cairn import Client
from cairn.supervise.leftovers import end_leftovers, left_running

from tests.client.supervise.jobs import run, script
from tests.client.until import LATEST, until

# A launcher that is killed while its worker, in a session of its own, trains on; the second start looks for it.
LAUNCHER = """
import os, signal, subprocess, sys
from pathlib import Path
pid = Path({pid!r})
if pid.exists():
    worker = Path(f"/proc/{{pid.read_text()}}/cmdline")
    sys.exit(print(worker.exists() and worker.read_bytes() != b""))  # one that nobody has buried yet has none
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"], start_new_session=True)
pid.write_text(str(worker.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.usefixtures("home")
def test_workers_of_a_killed_launcher_are_gone_before_the_next_start(
    live: Client, project: str, tmp_path: Path
) -> None:
    job = script(tmp_path, LAUNCHER.format(pid=str(tmp_path / "pid")))
    done = run(project, "--retries", "1", "--backoff", "0", job=job)
    assert (done.returncode, done.stdout) == (0, b"False\n"), done.stderr
    assert b"a process that the job has left running will be ended" in done.stderr


def sleeper(key: str, code: str = "") -> "subprocess.Popen[bytes]":
    text = f"import signal, time\n{code}\nprint(flush=True)\ntime.sleep(100)"
    environ = {**os.environ, "CAIRN_ATTEMPT_KEY": key}
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, env=environ)
    assert process.stdout is not None
    process.stdout.readline()
    return process


@pytest.fixture
def others() -> Iterator["subprocess.Popen[bytes]"]:
    process = sleeper("exec-other")
    yield process
    process.kill()
    process.communicate(timeout=LATEST)


def test_one_that_ignores_to_be_asked_is_killed_and_others_live(others: "subprocess.Popen[bytes]") -> None:
    stubborn = sleeper("exec-oth", "signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    said: list[str] = []
    end_leftovers("exec-oth", said.append, kindly_seconds=0.2)
    assert stubborn.wait(LATEST) == -9
    stubborn.communicate(timeout=LATEST)
    assert others.poll() is None
    assert list(left_running("exec-other")) == [others.pid]
    assert len(said) == 1
    assert str(stubborn.pid) in said[0]


def test_where_nothing_is_left_nothing_is_said() -> None:
    gone = sleeper("exec-gone", "raise SystemExit")
    gone.communicate(timeout=LATEST)
    said: list[str] = []
    until(lambda: not list(left_running("exec-gone")))
    end_leftovers("exec-gone", said.append)
    assert said == []
