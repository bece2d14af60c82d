"""`cairn exec` with real jobs against the real service: crash, signal, hang, starts again, terminal, registry away."""

import contextlib
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cairn import Client, ConnectionFailed, Retries
from cairn.supervise.reporter import Reporter
from cairn.supervise.tail import Tail
from cairn.types import Attempt, Incident

from tests.client.conftest import FaultServer, Reply
from tests.client.program import CAIRN, PATIENT
from tests.client.until import LATEST, until


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


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


def test_a_job_that_ends_well_is_a_finished_attempt_with_its_last_step(live: Client, project: str, home: Path) -> None:
    job = script(home, "print('step 41 | loss 2.5'); print('step 42 | loss 2.4')")
    done = run(project, job=job)
    assert (done.returncode, done.stderr) == (0, b"")
    (attempt,) = attempts(live, project)
    assert (attempt.state, attempt.raw["step"], attempt.raw["exit_code"]) == ("finished", 42, 0)
    assert attempt.raw["heartbeat_at"] is not None
    assert "job.py" in attempt.raw["command"]
    assert incidents(live, project) == []


def test_output_passes_through_unchanged_and_apart(live: Client, project: str, home: Path) -> None:
    text = r"""
import os, sys
os.write(1, bytes(range(256)) * 2000)
os.write(2, b"\xff\x00 aside\r\r\n")
"""
    done = run(project, job=script(home, text))
    assert done.stdout == bytes(range(256)) * 2000
    assert done.stderr == b"\xff\x00 aside\r\r\n"


def test_a_crash_opens_an_incident_with_its_cause_the_lines_and_the_steps_it_cost(
    live: Client, project: str, home: Path
) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 100)
    text = """
import sys
for step in range(100, 131):
    print(f"step {step} | loss 2.5")
print("HF_TOKEN=hf_abcdefghijklmnopqrstuvwx \\x1b[31mred\\x1b[0m")
print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr)
sys.exit(7)
"""
    done = run(project, "--restart", "--hardware", "8x H100", job=script(home, text))
    assert done.returncode == 7
    (incident,) = incidents(live, project)
    assert (incident.kind, incident.state, incident.cause) == ("crashed", "open", "gpu-memory")
    assert (incident.exit_code, incident.signal, incident.hardware) == (7, None, "8x H100")
    assert incident.evidence == ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",)
    assert incident.last_step == 130
    assert incident.node
    assert incident.log_excerpt is not None
    assert "hf_abcdef" not in incident.log_excerpt
    assert "\x1b" not in incident.log_excerpt
    assert attempts(live, project)[-1].state == "failed"


def test_steps_lost_count_from_what_the_attempt_loaded(live: Client, project: str, home: Path) -> None:
    loaded = live.register_checkpoint(live.create_run(project, "r"), 100)
    job = script(home, "print('step 130 | loss 2.5'); raise KeyError('lr')")
    assert run(project, "--resumed-from", loaded.id, job=job).returncode == 1
    (incident,) = incidents(live, project)
    assert (incident.steps_lost, incident.cause, incident.evidence) == (30, "python-exception", ("KeyError: 'lr'",))
    assert incident.checkpoint is not None
    assert incident.checkpoint.id == loaded.id


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


def test_a_hang_is_heard_of_and_makes_no_step(live: Client, project: str, home: Path) -> None:
    text = """
import time
for step in range(4):
    print(f"step {step} | loss 2.5"); time.sleep(0.4)
time.sleep(600)
"""
    with running(project, job=script(home, text)) as process:
        until(lambda: [each for each in _attempts_or_none(live, project) if each.raw["step"] == 3])
        first = attempts(live, project)[0].raw["heartbeat_at"]
        until(lambda: attempts(live, project)[0].raw["heartbeat_at"] > first)
        assert attempts(live, project)[0].raw["step"] == 3
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=LATEST)


def _attempts_or_none(client: Client, project: str) -> tuple[Attempt, ...]:
    found = list(client.list_runs(project=project))
    return client.list_attempts(found[0]) if found else ()


def test_after_a_failure_the_job_starts_again_from_what_resume_finds(live: Client, project: str, home: Path) -> None:
    """Each start tells what it was given; the first saves a checkpoint and dies, the second ends well."""
    text = """
import json, os, pathlib, sys
from cairn import Client, replica
names = ("CAIRN_RUN", "CAIRN_ATTEMPT_KEY", "CAIRN_RESUME_PATH", "CAIRN_RESUMED_FROM")
told = {name: os.environ.get(name) for name in names}
print(json.dumps({"arguments": sys.argv[1:], **told}))
if told["CAIRN_RESUME_PATH"]:
    sys.exit(0)
folder = pathlib.Path(os.environ["SAVES"]) / "step-50"
folder.mkdir()
(folder / "weights.bin").write_bytes(b"w" * 100)
project, run = told["CAIRN_RUN"].split("/")
with Client() as client:
    while not (found := client.list_attempts(client.find_run(project, run))):
        pass
    pieces = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
    copy = replica(folder, tier="shared")
    known = {"attempt": found[-1].number, "pieces": pieces, "replicas": [copy]}
    client.register_checkpoint(client.find_run(project, run), 50, **known)
print("step 61 | loss 2.0")
raise RuntimeError("boom")
"""
    os.environ["SAVES"] = str(home)
    try:
        done = run(project, "--retries", "2", "--backoff", "0.1", "--resume-flag", "--load", job=script(home, text))
    finally:
        del os.environ["SAVES"]
    starts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]
    assert done.returncode == 0, done.stderr
    assert len(starts) == 2
    path = str(home / "step-50")
    assert (starts[0]["arguments"], starts[1]["arguments"]) == ([], ["--load", path])
    assert (starts[1]["CAIRN_RESUME_PATH"], starts[1]["CAIRN_RUN"]) == (path, f"{project}/r")
    first, second = attempts(live, project)
    assert [first.key, second.key] == [each["CAIRN_ATTEMPT_KEY"] for each in starts]
    assert (first.state, second.state) == ("failed", "finished")
    assert second.raw["resumed_from"]["step"] == 50
    assert second.raw["resumed_from"]["checkpoint_id"] == starts[1]["CAIRN_RESUMED_FROM"]
    (incident,) = incidents(live, project)
    assert (incident.attempt, incident.steps_lost, incident.evidence) == (1, 11, ("RuntimeError: boom",))


def test_starts_end_after_as_many_as_were_allowed(live: Client, project: str, home: Path) -> None:
    job = script(home, "import sys; print('start'); sys.exit(5)")
    done = run(project, "--retries", "2", "--backoff", "0.01", job=job)
    assert (done.returncode, done.stdout.count(b"start")) == (5, 3)
    assert [each.state for each in attempts(live, project)] == ["failed"] * 3
    assert len(incidents(live, project)) == 3


def test_a_run_whose_checkpoints_cannot_be_loaded_here_is_not_started_over(
    live: Client, project: str, home: Path
) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 100)
    done = run(project, job=[*script(home, "print('started')"), "{resume}"])
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"it would start over" in done.stderr


def test_the_place_of_the_path_is_empty_where_there_is_no_checkpoint_yet(
    live: Client, project: str, home: Path
) -> None:
    job = [*script(home, "import sys; print(sys.argv[1:])"), "--load={resume}"]
    assert run(project, job=job).stdout == b"['--load=']\n"


def test_a_command_that_does_not_exist_ends_as_a_shell_would_say(live: Client, project: str, home: Path) -> None:
    done = run(project, "--retries", "5", job=["/no/such/program"])
    assert done.returncode == 127
    assert b"cannot be started" in done.stderr


@pytest.mark.parametrize(
    ("text", "mode", "code", "said"),
    [
        ("", 0o644, 126, b"Permission denied"),
        ("#!/no/such/interpreter\n", 0o755, 127, b"the program that its first line (#!) names is not there"),
    ],
)
def test_a_job_that_can_never_start_is_tried_once(
    live: Client, project: str, home: Path, text: str, mode: int, code: int, said: bytes
) -> None:
    job = home / "job.sh"
    job.write_text(text)
    job.chmod(mode)
    done = run(project, "--retries", "2", "--backoff", "0", job=[str(job)])
    assert done.returncode == code
    assert said in done.stderr
    (incident,) = incidents(live, project)
    assert incident.cause == "configuration"
    assert said.decode() in incident.evidence[0]
    assert f"`cairn incident show {incident.id}`" in done.stderr.decode()
    assert len(live.list_attempts(live.find_run(project, "r"))) == 1


def test_a_token_that_is_not_known_is_said_in_words_for_a_person(
    live: Client, project: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_TOKEN", "cairn_" + "x" * 40)
    done = run(project, job=["true"], program=CAIRN)
    assert done.returncode == 0
    assert b"No valid token was sent" in done.stderr
    assert b"Authorization" not in done.stderr


def test_the_attempt_of_a_job_that_does_not_say_what_it_loaded_waits_and_the_incident_does_not(
    live: Client, project: str, home: Path
) -> None:
    live.register_checkpoint(live.create_run(project, "r"), 100)
    done = run(project, job=script(home, "raise KeyError('lr')"))
    assert done.returncode == 1
    assert b"nobody said what this job loaded" in done.stderr
    assert len(attempts(live, project)) == 1
    (incident,) = incidents(live, project)
    assert (incident.attempt, incident.cause) == (None, "python-exception")


def test_the_recorder_in_the_job_may_open_the_attempt_first(live: Client, project: str, home: Path) -> None:
    loaded = live.register_checkpoint(live.create_run(project, "r"), 100)
    text = f"""
import os, time
from cairn import Client
with Client() as client:
    run = client.find_run({project!r}, "r")
    client.start_attempt(run, key=os.environ["CAIRN_ATTEMPT_KEY"], resumed_from={loaded.id!r}, config={{"lr": 1}})
print("step 120 | loss 2")
time.sleep(8)
raise KeyError("x")
"""
    run(project, job=script(home, text))
    _, second = attempts(live, project)
    assert (second.state, second.raw["step"]) == ("failed", 120)
    (incident,) = incidents(live, project)
    assert (incident.attempt, incident.steps_lost) == (2, 20)


def test_attempts_that_the_recorder_opened_after_going_back_end_with_the_job(
    live: Client, project: str, home: Path
) -> None:
    text = f"""
import os, time
from cairn import Client
with Client() as client:
    run, key = client.create_run({project!r}, "r"), os.environ["CAIRN_ATTEMPT_KEY"]
    client.start_attempt(run, key=key)
    saved = client.register_checkpoint(run, 100, attempt=1)
    client.start_attempt(run, key=key + ".2", resumed_from=saved)
print("step 120 | loss 2")
raise KeyError("x")
"""
    run(project, job=script(home, text))
    assert [each.state for each in attempts(live, project)] == ["stopped", "failed"]
    (incident,) = incidents(live, project)
    assert (incident.attempt, incident.steps_lost) == (2, 20)


# ---- a terminal


def test_on_a_terminal_the_job_has_one_of_the_same_size(live: Client, project: str, home: Path) -> None:
    text = r"""
import os, sys
print(os.isatty(1), os.isatty(2), tuple(os.get_terminal_size(1)))
os.write(1, b"raw\n\x1b[1mbold\x1b[0m\r")
"""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    attributes = termios.tcgetattr(theirs)
    attributes[1] &= ~termios.OPOST  # what the terminal itself would add
    termios.tcsetattr(theirs, termios.TCSANOW, attributes)
    command = [*PATIENT, "exec", "--run", f"{project}/r", "--", *script(home, text)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    assert _read_all(ours) == b"True True (100, 40)\nraw\n\x1b[1mbold\x1b[0m\r"
    assert process.wait(LATEST) == 0
    os.close(ours)
    assert attempts(live, project)[0].state == "finished"


def test_ctrl_c_on_a_terminal_reaches_the_job_once(live: Client, project: str, home: Path) -> None:
    ours, theirs = pty.openpty()
    command = [*PATIENT, "exec", "--run", f"{project}/r", "--", *script(home, WAITING)]

    def take_the_terminal() -> None:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_the_terminal)
    os.close(theirs)
    seen = b""
    while b"ready" not in seen:
        seen += os.read(ours, 1000)
    os.write(ours, b"\x03")
    rest = _read_all(ours)
    assert rest.count(b"got SIGINT") == 1
    assert process.wait(LATEST) == 3
    os.close(ours)


def _read_all(descriptor: int) -> bytes:
    found = b""
    while select.select([descriptor], [], [], LATEST)[0]:
        try:
            chunk = os.read(descriptor, 65536)
        except OSError:
            return found
        if not chunk:
            return found
        found += chunk
    raise AssertionError(found)


# ---- the registry away, and other trouble that must not reach the job


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


# ---- elastic jobs

FORMED = """torch.distributed.elastic.agent.server.api: [INFO] [default] Rendezvous complete for workers. Result:
  restart_count={count}
  master_addr=n1
  master_port=29500
  group_rank=0
  group_world_size={agents}
  local_ranks=[0, 1]
  role_world_sizes=[{size}, {size}]
  global_ranks=[0, 1]
  global_world_sizes=[{size}, {size}]
"""


def test_workers_that_form_anew_are_another_attempt_with_the_new_layout(live: Client, project: str, home: Path) -> None:
    loaded = live.register_checkpoint(live.create_run(project, "r"), 100)
    first, second = FORMED.format(count=0, agents=2, size=4), FORMED.format(count=1, agents=1, size=2)
    text = f"""
import time
print({first!r})
print("step 130 | loss 2")
time.sleep(2)
print("NVRM: Xid (PCI:0000:0f:00): 79, pid=2271, GPU has fallen off the bus.")
print({second!r})
time.sleep(4)
print("step 101 | loss 2")
time.sleep(2)
"""
    assert run(project, "--resumed-from", loaded.id, job=script(home, text)).returncode == 0
    _, before, after = attempts(live, project)
    assert (before.state, after.state) == ("stopped", "finished")
    assert after.key == f"{before.key}-r1"
    assert after.raw["resumed_from"]["step"] == 100
    assert "assumed" in after.raw["reason"]
    (incident,) = incidents(live, project)
    assert (incident.kind, incident.cause, incident.attempt) == ("reformed", "gpu-off-bus", 2)
    assert (incident.steps_lost, incident.state) == (30, "recovered")


def test_a_formation_that_is_read_late_is_told_with_the_steps_before_it(live: Client, project: str, home: Path) -> None:
    """The service was away when the workers met, who have made a step of their own since."""
    loaded = live.register_checkpoint(live.create_run(project, "r"), 100)
    first, second = FORMED.format(count=0, agents=2, size=4), FORMED.format(count=1, agents=1, size=2)
    reporter, tail = Reporter(f"{project}/r", print), Tail()
    reporter.begin("k", {"resumed_from": loaded.id}, tail)
    tail.add(1, f"{first}step 130 | loss 2\n{second}step 101 | loss 2\n".encode())
    with Client("http://127.0.0.1:9", "t", retries=Retries(count=0)) as nobody:
        reporter.sending._client = nobody
        with pytest.raises(ConnectionFailed):
            reporter._round()
    reporter.sending._client = live
    reporter._round()
    _, before, after = attempts(live, project)
    assert (before.state, before.raw["step"]) == ("stopped", 130)
    assert (after.key, after.raw["step"]) == ("k-r1", 101)
    (incident,) = incidents(live, project)
    assert (incident.attempt, incident.steps_lost) == (2, 30)
    reporter.end({"state": "finished"}, None)
    reporter._round()
    assert [each.state for each in attempts(live, project)[1:]] == ["stopped", "finished"]


def test_the_size_of_a_torchrun_job_is_its_first_layout(live: Client, project: str, home: Path) -> None:
    job = [*script(home, "print('here')"), "torchrun", "--nnodes", "2", "--nproc-per-node=8"]
    run(project, job=job)
    assert re.search("nnodes 2", attempts(live, project)[0].raw["command"])
