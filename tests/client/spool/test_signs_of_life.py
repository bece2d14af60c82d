"""A training that died is heard of once at least: by its own first heartbeat, or by whoever sends what it left."""

import signal
from datetime import UTC, datetime
from pathlib import Path

import pytest
from cairn import Client
from cairn.spool.flush import flush
from cairn.types import Attempt
from cairn.wire import moment

from tests.client.conftest import Cli
from tests.client.recorder.jobs import environment, job, run_job
from tests.client.until import LATEST, until

NOBODY = "http://127.0.0.1:9"
TRAINING = """
run = cairn.start({project!r}, 'r', capture=False)
for step in (1, 2, 3):
    run.log(step, loss=1.0)
    run.saved(f'/ckpt/{{step}}', step=step)
print('saved', flush=True)
{then}
"""
# Whose second heartbeat nobody lives to see.
RARELY = """
engine.HEARTBEAT_SECONDS = 36_000.0
"""


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CAIRN_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def test_an_attempt_is_heard_of_as_soon_as_it_is_open(
    live: Client, project: str, spool: Path, service: tuple[str, Path]
) -> None:
    code = RARELY + TRAINING.format(project=project, then="time.sleep(600)")
    training = job(code, environment(*service, spool))
    try:
        until(lambda: any(each.raw["heartbeat_at"] for each in attempts(live, project)))
    finally:
        training.send_signal(signal.SIGKILL)
        training.communicate(timeout=LATEST)


def attempts(live: Client, project: str) -> list[Attempt]:
    return [attempt for run in live.list_runs(project=project) for attempt in live.list_attempts(run)]


def test_what_is_sent_of_a_killed_training_says_when_it_lived_last(live: Client, project: str, spool: Path) -> None:
    training = job(TRAINING.format(project=project, then="time.sleep(600)"), environment(NOBODY, None, spool))
    assert training.stdout is not None
    assert training.stdout.readline() == "saved\n"
    still_lived = datetime.now(UTC)
    training.send_signal(signal.SIGKILL)
    training.communicate(timeout=LATEST)
    for left in spool.glob("*/service"):
        left.unlink()  # the same service, which was away
    flush(live)
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    saved = [each.saved_at for each in live.iter_checkpoints(filter=f"project = '{project}'", order_by="step desc")]
    assert (attempt.state, attempt.raw["step"]) == ("running", 3)
    beat = moment(attempt.raw["heartbeat_at"])
    assert beat is not None
    assert saved[0] is not None
    assert saved[0] <= beat <= still_lived


def test_a_training_that_said_how_it_ended_is_given_no_further_sign(live: Client, project: str, spool: Path) -> None:
    assert (
        run_job(TRAINING.format(project=project, then="run.finish()"), environment(NOBODY, None, spool)).returncode == 0
    )
    for left in spool.glob("*/service"):
        left.unlink()  # the same service, which was away
    flush(live)
    (attempt,) = live.list_attempts(live.find_run(project, "r"))
    assert (attempt.state, attempt.raw["heartbeat_at"]) == ("finished", None)


AHEAD = """
import cairn.recorder.course as course
course.now = lambda: '2096-01-02T03:04:05Z'
"""


def test_a_host_whose_clock_is_ahead_is_told_so_once_and_nothing_is_lost(
    live: Client, project: str, spool: Path, service: tuple[str, Path], cli: Cli
) -> None:
    ending = "run.finish(); run.flush(60)"
    done = run_job(AHEAD + TRAINING.format(project=project, then=ending), environment(*service, spool))
    assert done.stderr.count("is more than a day ahead of this service") == 1
    assert "set the clock of that host right" in done.stderr
    assert len(list(spool.glob("refused/*.json"))) == 3
    assert cli("spool", "again")[0] == 1
    code, out, err = cli("spool", "again", "--without-times")
    assert (code, out) == (0, "Sent 3 records that had been refused.\n"), err
    found = list(live.iter_checkpoints(filter=f"project = '{project}'"))
    assert sorted(each.step or 0 for each in found) == [1, 2, 3]
    assert all(live.get_checkpoint(each).raw["saved_at_assumed"] for each in found)


def test_a_flush_after_the_end_says_whether_all_was_sent(project: str, spool: Path, service: tuple[str, Path]) -> None:
    ending = "run.finish(); print(run.flush(60)); print(run.saved('/ckpt/9', step=9))"
    done = run_job(TRAINING.format(project=project, then=ending), environment(*service, spool))
    assert done.stdout == "saved\nTrue\nFalse\n"
    away = run_job(
        TRAINING.format(project=project, then="run.finish(); print(run.flush(0.2))"), environment(NOBODY, None, spool)
    )
    assert away.stdout == "saved\nFalse\n"
