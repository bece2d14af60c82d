"""Signals: what ends a job is told, and what the supervisor is sent reaches the job."""

import signal
from pathlib import Path

import pytest
from cairn import Client

from tests.client.supervise.jobs import WAITING, attempts, incidents, run, running, script
from tests.client.until import LATEST


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT], ids=lambda number: number.name)
def test_a_signal_that_ends_the_job_is_told_and_passed_up(
    live: Client, project: str, home: Path, number: signal.Signals
) -> None:
    job = script(
        home, f"import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); os.kill(os.getpid(), {number})"
    )
    assert run(project, job=job).returncode == 128 + number
    (incident,) = incidents(live, project)
    assert (incident.signal, incident.exit_code) == (number.name, 128 + number)
    assert incident.cause == ("unknown" if number is signal.SIGKILL else "native-crash")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_to_the_supervisor_reaches_the_job_once_and_ends_all_starts(
    live: Client, project: str, home: Path, number: signal.Signals
) -> None:
    with running(project, "--retries", "3", "--backoff", "0", job=script(home, WAITING)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=LATEST)
        assert (out, process.returncode) == (f"got {number.name}\n".encode(), 3)
    (attempt,) = attempts(live, project)
    assert attempt.state == "stopped"
    (incident,) = incidents(live, project)
    assert (incident.cause, incident.state) == ("user-interrupt", "closed")
    assert incident.evidence[0] == f"{number.name} was sent to the job"


def test_a_bare_sigterm_below_a_scheduler_is_its_own_and_open_until_training_goes_on(
    live: Client, project: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "4711")
    with running(project, job=script(home, WAITING)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LATEST)
    (incident,) = incidents(live, project)
    assert (incident.cause, incident.state) == ("scheduler", "open")


def test_signals_that_only_tell_the_job_something_are_passed_on_too(live: Client, project: str, home: Path) -> None:
    with running(project, job=script(home, WAITING)) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            process.send_signal(number)
            assert process.stdout.readline() == f"got {number.name}\n".encode()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LATEST)


def test_a_job_that_dies_of_the_signal_it_was_sent_ends_as_a_shell_would_say(
    live: Client, project: str, home: Path
) -> None:
    with running(project, job=script(home, "import time; print('ready'); time.sleep(600)")) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LATEST)
        assert process.returncode == 128 + signal.SIGTERM
