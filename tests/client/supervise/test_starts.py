"""Starts after a failure: from what `cairn resume` finds, as often as was allowed."""

import json
import os
from pathlib import Path

import pytest
from cairn import Client

from tests.client.supervise.jobs import attempts, incidents, run, script


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
