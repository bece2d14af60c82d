"""`cairn watch` as a process: it ends when it is told to, waits where the service is away, and says what it needs."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cairn import Client
from cairn.watch.tiers import tier_of

from tests.client.conftest import Cli
from tests.client.scan.trees import LONG_AGO, trainer
from tests.client.until import LATEST


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_it_records_until_it_is_told_to_end(
    live: Client, service: tuple[str, Path], project: str, tmp_path: Path, end: signal.Signals
) -> None:
    trainer(tmp_path / "ckpt/checkpoint-10", 10, at=LONG_AGO)
    command = [sys.executable, "-c", "import sys; from cairn.cli import main; sys.exit(main())", "watch"]
    options = [str(tmp_path / "ckpt"), "--run", f"{project}/r", "--poll", "0.2", "--quiet", "0", "--json"]
    environ = {**os.environ, "CAIRN_URL": service[0], "CAIRN_HOME": str(service[1]), "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, env=environ, text=True) as process:
        assert process.stdout is not None
        events = [json.loads(process.stdout.readline()) for _ in range(2)]
        made = trainer(tmp_path / "checkpoint-20", 20, at=LONG_AGO + 60)
        made.rename(tmp_path / "ckpt/checkpoint-20")  # whole at once: a look may come at any moment
        events.append(json.loads(process.stdout.readline()))
        process.send_signal(end)
        assert process.wait(LATEST) == 0
    assert [each["event"] for each in events] == ["recorded", "curves", "recorded"]
    assert [each["step"] for each in events if "step" in each] == [10, 20]


def test_a_signal_ends_it_wherever_it_meets_it() -> None:
    code = """
import signal
from cairn.cli.commands.watch import _until_stopped
with _until_stopped() as stop:
    with stop._cond:  # as it is held for a moment by whoever waits
        signal.raise_signal(signal.SIGTERM)
    assert stop.wait(60)
"""
    subprocess.run([sys.executable, "-c", code], timeout=LATEST, check=True)


def test_once_looks_once_and_answers_whether_something_is_recorded(
    live: Client, project: str, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "ckpt").mkdir()
    assert cli("watch", str(tmp_path / "ckpt"), "--run", f"{project}/r", "--once")[0] == 1
    trainer(tmp_path / "ckpt/checkpoint-10", 10, at=LONG_AGO)
    code, printed, _ = cli("watch", str(tmp_path / "ckpt"), "--run", f"{project}/r", "--once", "--tier", "shared")
    assert code == 0
    assert printed.startswith("recorded: r · 1 · 10 at ")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--run", "norun"), 2, "expected project/run"),
        (("--run", "p/r", "--poll", "0"), 2, "--poll"),
        (("--run", "p/r", "--once"), 1, "is no folder"),
    ],
)
def test_a_mistake_is_said(
    live: Client, cli: Cli, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    answered, _, aside = cli("watch", str(tmp_path / "nothing"), *arguments)
    assert answered == code
    assert said in aside


def test_the_tier_is_that_of_the_file_system(tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/sda / ext4 rw 0 0\nserver:/x {tmp_path}/shared\\040disk nfs4 rw 0 0\nbroken\n"
        f"/dev/sdb {tmp_path}/shared\\040disk/scratch xfs rw 0 0\n"
    )
    assert tier_of(str(tmp_path), str(mounts)) == "local"
    assert tier_of(str(tmp_path / "shared disk" / "run"), str(mounts)) == "shared"
    assert tier_of(str(tmp_path / "shared disk" / "scratch" / "run"), str(mounts)) == "local"
    assert tier_of(str(tmp_path), str(tmp_path / "no-such-file")) is None
