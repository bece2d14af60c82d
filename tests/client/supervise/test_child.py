"""The job's output on its way through the supervisor."""

import os
import sys
from pathlib import Path

import pytest
from cairn.supervise import child
from cairn.supervise.child import Signals, run_child

from tests.client.until import until

JOB = """
import os, sys, time
os.write(1, b"%d\\n" % os.getpid())
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
os.write(1, b"out" * 1_000)
os.write(2, b"err" * 1_000)
"""


def test_the_last_words_of_a_job_reach_a_reader_that_is_slower_than_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child, "DRAIN_SECONDS", -1.0)  # over before our reader comes back to it
    go, heard = tmp_path / "go", {1: b"", 2: b""}

    def read_slowly(stream: int, chunk: bytes) -> None:
        heard[stream] += chunk
        if not go.exists():
            go.touch()
            until(lambda: has_ended(int(heard[1])))

    ended = run_child([sys.executable, "-c", JOB, str(go)], os.environ, Signals(), read_slowly)
    assert ended.code == 0
    assert heard[1].partition(b"\n")[2] == b"out" * 1_000
    assert heard[2] == b"err" * 1_000


def has_ended(pid: int) -> bool:
    """As a zombie that nobody has waited for yet."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
