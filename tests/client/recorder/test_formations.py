"""Workers that torchrun forms anew are another attempt, told from inside the job. Here the test is torchrun's agent."""

import os
from pathlib import Path
from typing import Any

import pytest
from cairn import Client
from cairn.spool.flush import flush

from tests.client.recorder.jobs import environment, run_job


@pytest.fixture
def formed(service: tuple[str, Path], spool: Path, tmp_path: Path, project: str) -> Any:
    """Runs rank 0 of one formation."""

    def run(restart_count: int, world_size: int, *steps: int, **more: str) -> None:
        own = {"TORCHELASTIC_RUN_ID": "job-7", "TORCHELASTIC_RESTART_COUNT": str(restart_count), "RANK": "0"}
        env = environment(*service, spool) | own | {"WORLD_SIZE": str(world_size), "TMPDIR": str(tmp_path)} | more
        code = f"run = cairn.start({project!r}, 'r', capture={{**OFF, 'layout': True}})\n"
        done = run_job(code + "".join(f"run.log({step}, loss=1.0)\nrun.saved(step={step})\n" for step in steps), env)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr

    return run


def test_each_formation_is_an_attempt_that_says_why_and_with_its_own_layout(
    live: Client, project: str, formed: Any
) -> None:
    told = {"CAIRN_ATTEMPT_KEY": "exec-1", "CAIRN_RESUMED_FROM": ""}
    formed(0, 4, 10, 20, **told)
    formed(0, 2, 21, 30, **told)  # a host has left: the same count of restarts
    formed(1, 2, 22, 40, **told | {"CAIRN_RESUMED_FROM": "10"})  # a worker has failed; they loaded step 21, not 10
    flush(live)
    first, second, third = live.list_attempts(live.find_run(project, "r"))
    assert [each.key for each in (first, second, third)] == ["exec-1", "exec-1-r0m1", "exec-1-r1"]
    assert first.raw["reason"] is None
    assert "membership change: torchrun formed 2 workers anew, 4 before" in second.raw["reason"]
    assert "started its 2 workers again after a failure (restart 1)" in third.raw["reason"]
    saved = [live.get_checkpoint(each) for each in live.iter_checkpoints(filter=f"project = '{project}'")]
    assert {each.attempt: each.raw["layout"]["world_size"] for each in saved} == {1: 4, 2: 2, 3: 2}
    assert [each.raw["resumed_from"]["step"] for each in (second, third)] == [20, 21]


def test_a_job_that_is_begun_again_is_no_formation(
    live: Client, project: str, formed: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    formed(0, 4, 10)
    for left in Path(os.environ["CAIRN_SPOOL"]).parent.glob("cairn-spool-*/formation-*"):
        left.unlink()  # another agent would not find it
    formed(0, 4, 11)
    flush(live)
    first, second = live.list_attempts(live.find_run(project, "r"))
    assert "torchrun" not in (second.raw["reason"] or "")
    assert first.key != second.key
