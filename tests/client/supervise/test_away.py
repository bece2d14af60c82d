"""`cairn exec` with the registry away, and other trouble that must not reach the job."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from cairn import Client

from tests.client.conftest import FaultServer, Reply
from tests.client.program import CAIRN
from tests.client.supervise.jobs import attempts, incidents, run, running, script
from tests.client.until import LATEST, until


def away(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("CAIRN_URL", url)
    monkeypatch.setenv("CAIRN_TOKEN", "t" * 20)


def test_without_the_registry_the_job_runs_and_the_next_one_sends_what_was_kept(
    live: Client, project: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        away(broken, "http://127.0.0.1:9")
        done = run(
            project,
            "--retries",
            "1",
            "--backoff",
            "0.01",
            job=script(home, "print('step 7 | loss 1'); raise KeyError('lr')"),
            program=CAIRN,
        )
        assert (done.returncode, done.stdout) == (1, b"step 7 | loss 1\n" * 2)
        assert b"kept for the next" in done.stderr
    assert list(live.list_runs(project=project)) == []
    (kept,) = (home / "spool/exec").glob("*.json")
    assert os.stat(kept).st_mode & 0o077 == 0
    kept.write_text(kept.read_text().replace('"http://127.0.0.1:9"', '""'))  # the same service under another address
    assert run(project, job=script(home, "print('step 9 | loss 1')")).returncode == 0
    until(lambda: not kept.exists())
    assert sorted(each.state or "" for each in attempts(live, project)) == ["failed", "failed", "finished"]
    found = incidents(live, project)
    assert [(each.cause, each.last_step) for each in found] == [("python-exception", 7)] * 2


def test_the_attempt_of_a_supervisor_that_is_killed_while_the_service_is_away_is_not_lost(
    live: Client, project: str, home: Path, monkeypatch: pytest.MonkeyPatch, service: tuple[str, Path]
) -> None:
    monkeypatch.setenv("CAIRN_URL", "http://127.0.0.1:9")
    waiting = home / "spool" / "exec"
    text = "import time\nwhile True:\n    print(flush=True)\n    time.sleep(0.2)"  # ends when nobody reads it any more
    with running(project, job=script(home, text)) as supervisor:
        until(lambda: list(waiting.glob("*.json")))
        supervisor.kill()
        supervisor.communicate(timeout=LATEST)
    monkeypatch.setenv("CAIRN_URL", service[0])
    flush = [*CAIRN, "spool", "flush", "--here"]
    subprocess.run(flush, check=True, timeout=LATEST, capture_output=True)
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert str(attempt.key).startswith("exec-")


@pytest.mark.parametrize(
    "reply", [Reply(500), Reply(401), Reply(wait_seconds=600), Reply(hang_up=True), Reply(body=b"{}")]
)
def test_a_service_that_fails_never_holds_up_the_job(
    faults: FaultServer, home: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply
) -> None:
    faults.replies = [reply]
    away(monkeypatch, faults.url)
    done = run("p", job=script(home, "import sys; print('here'); sys.exit(4)"), program=CAIRN)
    assert (done.returncode, done.stdout) == (4, b"here\n")


def test_without_any_token_or_place_for_files_the_job_runs_all_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_URL", "no url at all")
    monkeypatch.setenv("CAIRN_SPOOL", "/proc/none")
    done = run("p", job=script(home, "import sys; print('here'); sys.exit(4)"), program=CAIRN)
    assert (done.returncode, done.stdout) == (4, b"here\n")
    assert b"lost, since they could not be written either" in done.stderr


def test_a_reader_that_goes_away_does_not_end_the_job(live: Client, project: str, home: Path) -> None:
    text = "import pathlib, sys\nfor _ in range(20000): print('x' * 100)\npathlib.Path(sys.argv[1]).write_text('whole')"
    job = [*script(home, text), str(home / "done")]
    with running(project, job=job) as process:
        assert process.stdout is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.wait(LATEST) == 0
        process.stdout = None
    assert (home / "done").read_text() == "whole"


def test_a_process_that_the_job_leaves_behind_does_not_hold_up_its_end(live: Client, project: str, home: Path) -> None:
    text = """
import pathlib, subprocess, sys
left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(sys.argv[1]).write_text(str(left.pid))
print("bye")
"""
    try:
        assert run(project, job=[*script(home, text), str(home / "left")]).stdout == b"bye\n"
    finally:
        os.kill(int((home / "left").read_text()), signal.SIGKILL)


def test_bad_arguments_are_refused_before_anything_starts(home: Path) -> None:
    job = script(home, "print('started')")
    for arguments in (("--retries", "-1"), ("--backoff", "nan"), ("--resumed-from", "x", "--restart"), ("--typo",)):
        done = run("p", *arguments, job=job, program=CAIRN)
        assert (done.returncode, done.stdout) == (2, b""), arguments
    done = subprocess.run(
        [*CAIRN, "exec", "--run", "no-slash", "--", *job], capture_output=True, timeout=LATEST, check=False
    )
    assert (done.returncode, done.stdout) == (2, b"")
    done = subprocess.run([*CAIRN, "exec", "--run", "p/r"], capture_output=True, timeout=LATEST, check=False)
    assert done.returncode == 2
