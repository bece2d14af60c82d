"""A drill runs the user's own training, which records itself: nothing of it may reach the run that is drilled."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from cairn import Client
from cairn.errors import InDrill
from cairn.replicas import replica
from cairn.types import Run

from tests.client.conftest import Cli
from tests.client.program import CAIRN

LOOP = """
import cairn, sys
load, out = sys.argv[1:]
run = cairn.start({project!r}, "7b", resumed_from=20)
for step in range(21, 31):
    run.log(step, loss=1.0)
    open(out, "a").write('{{"step": %d, "loss": 1.0}}\\n' % step)
run.saving(30)
run.saved({folder!r}, step=30, loss=1.0)
run.scored(20, {{"gsm8k": 0.1}})
cairn.resume_receipt(pieces={{"weights": "restored"}})
print("flushed", run.flush(1))
run.finish()
"""


@pytest.fixture
def run(live: Client, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Attempt 1 saved steps 20 and 30."""
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    run = live.create_run(project, "7b")
    live.start_attempt(run, key="first", restart=True)
    for step in (20, 30):
        folder = tmp_path / str(step)
        folder.mkdir()
        (folder / "state.json").write_text(json.dumps({"step": step}))
        copy = replica(folder, tier="shared", digest=True)
        whole = {"weights": "present", "optimizer": "present", "data_position": "present"}
        live.register_checkpoint(run, step, replicas=[copy], pieces=whole)
    return run


def state(live: Client, run: Run) -> list[object]:
    """All that a training may write of a run."""
    saved = [live.get_checkpoint(each).raw for each in live.iter_checkpoints(filter=f"run.id = '{run.id}'")]
    curves = live.read_series(run, "loss")
    return [live.list_attempts(run), saved, curves, list(live.list_incidents(project=run.project))]


def script(folder: Path, text: str) -> list[str]:
    path = folder / "loop.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def test_a_loop_that_records_itself_leaves_nothing_in_its_run(
    cli: Cli, live: Client, run: Run, project: str, tmp_path: Path
) -> None:
    before = state(live, run)
    job = script(tmp_path, LOOP.format(project=project, folder=str(tmp_path / "30")))
    code, _, err = cli("drill", f"{project}/7b@20", "--", *job, "{path}", "{out}")
    assert code == 0, err
    assert state(live, run) == before
    assert not (tmp_path / "spool").exists()  # nothing waits to be sent later either
    assert err.count("this is a drill") == 1
    assert "flushed True" in err
    code, out, err = cli("resume", "--run", f"{project}/7b")
    assert (code, out.strip()) == (0, str(tmp_path / "30")), err


def test_another_rank_of_a_drill_links_no_tracker(live: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from cairn.recorder import Silent, start

    monkeypatch.setenv("CAIRN_DRILL", "somebody/7b@20")
    monkeypatch.setattr("cairn.capture.trackers.active_trackers", lambda: pytest.fail("a drill links nothing"))
    silent = start("somebody", "7b", rank=3)
    assert isinstance(silent, Silent)
    assert "in a drill" in repr(silent)


@pytest.mark.parametrize(
    "words",
    [
        ["record", "--project", "{project}", "--run", "7b", "--step", "40"],
        ["watch", "{folder}", "--run", "{project}/7b", "--tier", "shared"],
        ["watch", "{folder}", "--run", "{project}/7b", "--tier", "shared", "--once"],
        ["resume", "--run", "{project}/7b"],
        ["resume", "--run", "{project}/7b", "--or-fresh"],
        ["exec", "--run", "{project}/7b", "--", "cat", "{{resume}}"],
        ["incident", "open", "--run", "{project}/7b", "--cause", "user"],
        ["spool", "flush"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_a_command_that_would_write_into_a_run_says_that_this_is_a_drill(
    cli: Cli,
    live: Client,
    run: Run,
    project: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: Sequence[str],
) -> None:
    before = state(live, run)
    monkeypatch.setenv("CAIRN_DRILL", f"{project}/7b@1.20")
    code, out, err = cli(*(each.format(project=project, folder=tmp_path) for each in words))
    assert code == 3, err
    assert "a drill" in err
    assert out == ""
    assert state(live, run) == before


def test_exec_under_a_drill_runs_its_job_and_records_nothing(
    live: Client, run: Run, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(live, run)
    monkeypatch.setenv("CAIRN_DRILL", f"{project}/7b@1.20")
    job = script(tmp_path, "import os, sys; print(os.environ['CAIRN_RUN'], sys.argv[1]); sys.exit(7)")
    command = [*CAIRN, "exec", "--run", f"{project}/7b", "--retries", "3", "--", *job, "step 21"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[1:]) == (7, ["step", "21"])
    assert done.stderr.count("part of a drill") == 1
    assert state(live, run) == before


def test_what_only_asks_is_answered_in_a_drill(
    cli: Cli, live: Client, run: Run, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_DRILL", f"{project}/7b@1.20")
    assert cli("run", "show", f"{project}/7b")[0] == 0
    assert cli("rollback", "--run", f"{project}/7b")[0] == 0
    assert live.resume_plan(run).candidates


def test_a_script_that_calls_the_service_itself_is_told(
    live: Client, run: Run, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAIRN_DRILL", f"{project}/7b@1.20")
    with pytest.raises(InDrill, match="CAIRN_DRILL"):
        live.start_attempt(run, key="second", restart=True)
    with pytest.raises(InDrill):
        live._send("POST", f"/aliases/{project}/production/rollback", {}, idempotent=False)
