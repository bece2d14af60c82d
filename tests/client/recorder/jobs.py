"""Training jobs as processes of their own, for what only a process can show: its end, its signals, its forks."""

import os
import subprocess
import sys
from pathlib import Path

HEAD = "import os, sys, time\nimport cairn\nOFF = {'git': False, 'machine': False, 'libraries': False}\n"


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


def run_job(code: str, env: dict[str, str], *, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
    started = job(code, env)
    try:
        out, err = started.communicate(timeout=seconds)
    finally:
        started.kill()
    return subprocess.CompletedProcess([], started.returncode, out, err)
