"""A process that is over before its background has begun."""

import os
from pathlib import Path

from cairn import Client

from tests.client.recorder.jobs import environment, run_job


def test_a_process_that_ends_at_once_sends_what_it_recorded(
    live: Client, project: str, spool: Path, tmp_path: Path
) -> None:
    """Its background imports what it needs when the main thread is through, where no hook may be added any more."""
    code = f"""
run = cairn.start('{project}', 'r', capture=OFF)
run.log(1, loss=2.0)
run.saved(step=1, loss=2.0)
run.finish()
"""
    done = run_job(code, environment(os.environ["CAIRN_URL"], Path(os.environ["CAIRN_HOME"]), spool))
    assert (done.returncode, done.stderr) == (0, "")
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert (one.step, one.raw["loss"]) == (1, 2.0)


def test_a_save_that_is_not_where_it_is_said_to_be_is_noted_and_warned_of(
    live: Client, project: str, spool: Path, tmp_path: Path
) -> None:
    code = f"run = cairn.start('{project}', 'r', capture=OFF)\nrun.saved('{tmp_path}/typo', step=1)\nrun.finish()"
    done = run_job(code, environment(os.environ["CAIRN_URL"], Path(os.environ["CAIRN_HOME"]), spool))
    assert f"checkpoint at step 1: {tmp_path}/typo is not there" in done.stderr
    (one,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert "is not there" in live.get_checkpoint(one).raw["notes"]
