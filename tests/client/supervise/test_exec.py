"""`cairn exec` with real jobs against the real service: how a job ends, what its attempt and its incident say."""

import signal
from pathlib import Path

import pytest
from cairn import Client
from cairn.types import Attempt

from tests.client.program import CAIRN
from tests.client.supervise.jobs import attempts, incidents, run, running, script
from tests.client.until import LATEST, until


def _attempts_or_none(client: Client, project: str) -> tuple[Attempt, ...]:
    found = list(client.list_runs(project=project))
    return client.list_attempts(found[0]) if found else ()


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


def test_a_command_that_does_not_exist_ends_as_a_shell_would_say(live: Client, project: str, home: Path) -> None:
    done = run(project, "--retries", "5", job=["/no/such/program"])
    assert done.returncode == 127
    assert b"cannot be started" in done.stderr


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
    while client.list_attempts(run)[-1].raw["step"] != 120:  # until the supervisor has found the attempt
        time.sleep(0.05)
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
