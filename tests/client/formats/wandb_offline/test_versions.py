"""Folders of older versions of the real library, each in a virtual environment of its own."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from cairn.formats.wandb_offline import read_folder, step_of

from tests.client.formats.wandb_offline.conftest import STEPS, train

pytestmark = pytest.mark.trackers
# What each needs beside itself: they were published before what they depend on changed.
OLD = {"0.17.9": ["setuptools<80"], "0.19.11": ["setuptools<80"], "0.22.3": []}


@pytest.fixture(scope="module", params=OLD)
def old_run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("old")
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True, timeout=600)
    python = folder / "venv" / "bin" / "python"
    packages = [f"wandb=={request.param}", *OLD[request.param]]
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(install, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        pytest.skip(f"wandb {request.param} cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return train(folder / "work", "well", python=str(python))


def test_one_reader_reads_every_version(old_run: Path) -> None:
    run = read_folder(old_run)
    assert (run.state, run.problems) == ("finished", ())
    assert run.facts.config == {"lr": 3e-4, "optim": {"name": "adamw", "betas": [0.9, 0.95]}, "gone": 1, "late": 1}
    assert [row.index for row in run.rows] == list(range(1, STEPS + 1))
    by_step = {row.index: row.values for row in run.rows}
    assert math.isnan(by_step[10]["train/loss"])
    assert (by_step[11]["train/loss"], by_step[12]["train/loss"]) == (math.inf, -math.inf)
    assert by_step[200] == {"train/loss": 0.01, "nested.a.b": 200.0, "eval/gsm8k": 0.5}
    assert (run.facts.summary["best"], "dropped" in run.facts.summary) == (0.5, False)
    assert [(each.name, step_of(each).step) for each in run.artifacts] == [("model-tiny", 40), ("copied", 60)]
