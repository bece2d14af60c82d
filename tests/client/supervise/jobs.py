"""Jobs under `cairn exec`, and what the service has of them."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cairn import Client
from cairn.types import Attempt, Incident

from tests.client.program import PATIENT
from tests.client.until import LATEST

# A job that says which signal it got, and ends with 3 at one that asks for its end.
WAITING = """
import signal, sys, time
def handler(number, frame):
    print("got", signal.Signals(number).name)
    if number not in (signal.SIGUSR1, signal.SIGUSR2):
        sys.exit(3)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    signal.signal(number, handler)
print("ready")
while True:
    time.sleep(0.05)
"""


def script(folder: Path, text: str, name: str = "job.py") -> list[str]:
    path = folder / name
    path.write_text(text)
    return [sys.executable, "-u", str(path)]


def run(
    project: str, *arguments: str, job: list[str], program: list[str] = PATIENT
) -> "subprocess.CompletedProcess[bytes]":
    command = [*program, "exec", "--run", f"{project}/r", "--heartbeat", "0.2", *arguments, "--", *job]
    return subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, timeout=2 * LATEST, check=False)


@contextlib.contextmanager
def running(project: str, *arguments: str, job: list[str], **given: Any) -> "Iterator[subprocess.Popen[bytes]]":
    command = [*PATIENT, "exec", "--run", f"{project}/r", "--heartbeat", "0.2", *arguments, "--", *job]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, **given
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def attempts(client: Client, project: str) -> tuple[Attempt, ...]:
    return client.list_attempts(client.find_run(project, "r"))


def incidents(client: Client, project: str) -> list[Incident]:
    return [client.get_incident(each.id) for each in client.list_incidents(project=project)]
