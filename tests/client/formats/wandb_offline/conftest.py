"""Files that the real library wrote: a small one that is committed, and those of trainings that run here."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FIXTURE = HERE / "run-fixture.wandb"
STEPS = 200
Train = Callable[[str], Path]


def train(folder: Path, how: str, *, steps: int = STEPS, python: str = sys.executable) -> Path:
    """The folder of the run that this training leaves."""
    folder.mkdir(parents=True, exist_ok=True)
    script = str(HERE / "train.py")
    with (folder / "said.txt").open("w") as said:  # no pipe: a helper that outlives a killed training would hold it
        done = subprocess.run(
            [python, script, str(steps), how],
            cwd=folder,
            stdout=said,
            stderr=said,
            timeout=400,
            check=False,
            start_new_session=True,
        )
    expected = -9 if how == "killed" else 0
    assert done.returncode == expected, (folder / "said.txt").read_text()
    return next((folder / "wandb").glob("offline-run-*"))


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Train:
    """Runs a training once for each way of ending it."""
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    folders: dict[str, Path] = {}

    def get(how: str) -> Path:
        if how not in folders:
            folders[how] = train(tmp_path_factory.mktemp(how), how)
        return folders[how]

    return get


@pytest.fixture
def copy(tmp_path: Path) -> Callable[[bytes], Path]:
    """A file with these bytes."""

    def write(content: bytes) -> Path:
        path = tmp_path / "run-copy.wandb"
        path.write_bytes(content)
        return path

    return write
