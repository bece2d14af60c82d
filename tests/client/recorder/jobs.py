"""Training jobs as processes of their own, for what only a process can show: its end, its signals, its forks."""

import os
import subprocess
import sys
from pathlib import Path

# However busy the machine and its disk are: what a job is told of its records is not about them.
HEAD = """
import os, sys, time
import cairn
from cairn.recorder import engine
from cairn.spool import writer
engine.START_SECONDS = writer.SLOW_SECONDS = 60.0
if 'CAIRN_HOME' in os.environ:  # the real service, which shall have heard of everything when the job has ended
    engine.shut_down.__defaults__ = (60.0,)
OFF = {'git': False, 'machine': False, 'libraries': False}
"""


def environment(url: str, home: Path | None, spool: Path, **more: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("CAIRN_", "SLURM_"))}
    token = {"CAIRN_HOME": str(home)} if home else {"CAIRN_TOKEN": "a-token"}
    return {**own, **token, "CAIRN_URL": url, "CAIRN_SPOOL": str(spool), "PYTHONUNBUFFERED": "1", **more}


def job(code: str, env: dict[str, str]) -> "subprocess.Popen[str]":
    """A started job, whose output is read by the test."""
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", HEAD + code],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_job(code: str, env: dict[str, str], *, seconds: float = 120) -> "subprocess.CompletedProcess[str]":
    started = job(code, env)
    try:
        out, err = started.communicate(timeout=seconds)
    finally:
        started.kill()
    return subprocess.CompletedProcess([], started.returncode, out, err)
