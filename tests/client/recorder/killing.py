"""Kills a training job at random moments and holds the registry against what the job was told is spooled."""

import random
import signal
import time
from pathlib import Path

from cairn import Client
from cairn.spool.flush import flush

from tests.client.recorder.jobs import environment, job
from tests.client.until import LATEST

# Says `step N` for every save that was acknowledged as spooled.
TRAINING = """
last = int(sys.argv[1]) if len(sys.argv) > 1 else 0
run = cairn.start({project!r}, 'r', capture=False, **({{'resumed_from': {last}}} if {last} else {{}}))
step = {last}
while True:
    step += 1
    run.log(step, loss=1.0 / step)
    if run.saved(f'/ckpt/{{step}}', step=step, loss=1.0 / step, cursor={{'at': step}}):
        os.write(1, b'step %d\\n' % step)
    time.sleep(0.004)
"""


def kill_often(
    live: Client, project: str, service: tuple[str, Path], spool: Path, *, kills: int, seed: int, moments: int = 0
) -> None:
    """Each execution goes on from the last acknowledged step; at the end nothing is missing and nothing is double."""
    chance = random.Random(seed)
    acknowledged: list[tuple[int, int]] = []
    last = 0
    for number in range(1, kills + 1):
        started = job(TRAINING.format(project=project, last=last), environment(*service, spool))
        assert started.stdout is not None
        assert started.stderr is not None
        first = started.stdout.readline()  # so that every execution has come as far as its first save
        time.sleep(chance.uniform(0.0, 0.5))
        started.send_signal(signal.SIGKILL)
        # Not `communicate`, which does not see what was read ahead with the first line.
        rest, err = started.stdout.read(), started.stderr.read()
        started.wait(LATEST)
        started.stdout.close()
        started.stderr.close()
        lines = [line for line in (first + rest).splitlines() if line.startswith("step ")]
        assert lines, err
        acknowledged += [(number, int(line[5:])) for line in lines]
        last = acknowledged[-1][1]
    for _ in range(3):
        flush(live)
    check(live, project, acknowledged, kills)
    assert not list(spool.glob("*/records-*.log"))
    assert not list(spool.glob("refused/*"))


def check(live: Client, project: str, acknowledged: list[tuple[int, int]], executions: int) -> None:
    found = [(each.attempt or 0, each.step or 0) for each in live.iter_checkpoints(filter=f"project = '{project}'")]
    assert len(found) == len(set(found))
    assert set(acknowledged) <= set(found), sorted(set(acknowledged) - set(found))[:10]
    run = live.find_run(project, "r")
    attempts = live.list_attempts(run)
    assert [each.number for each in attempts] == list(range(1, executions + 1))
    # A save may be written and not be acknowledged any more; never more than the one that was under way.
    beyond = sorted(set(found) - set(acknowledged))
    assert len(beyond) <= executions
    for attempt, before in zip(attempts[1:], attempts, strict=False):
        resumed = attempt.raw["resumed_from"]
        assert (resumed["attempt"], resumed["checkpoint_id"] is not None) == (before.number, True)
    for curve in live.read_series(run, "loss"):
        assert list(curve.steps) == sorted(set(curve.steps))
        missing = {step for number, step in acknowledged if number == curve.attempt} - set(curve.steps)
        assert not missing, "points that were logged before an acknowledged save"
        assert all(value == 1.0 / step for step, value in zip(curve.steps, curve.values, strict=True))
