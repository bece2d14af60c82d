"""Small checkpoint folders for a scan to find, in the shapes that training frameworks leave."""

import json
import os
import shutil
import struct
from collections.abc import Mapping
from pathlib import Path

import pytest

FIXTURES = Path(__file__).parents[1] / "fixtures" / "checkpoints"
LONG_AGO = 1_700_000_000


def safetensors(path: Path, *, step: int | None = None, tensors: Mapping[str, object] | None = None) -> Path:
    """A file of the format with one tensor, or those of a header; `step` stands in its metadata."""
    header = dict(tensors or {"w": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 16]}})
    if step is not None:
        header["__metadata__"] = {"step": str(step)}
    head = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(head)) + head + (b"" if tensors else bytes(16)))
    return path


def trainer(folder: Path, step: int, *, at: float | None = None, loss: float = 2.0) -> Path:
    """A folder of Hugging Face's Trainer with weights and state. `at`: when it was written, seconds since the epoch."""
    safetensors(folder / "model.safetensors")
    history = [{"step": step, "loss": loss, "learning_rate": 1e-4, "epoch": 0.5}]
    state = {"global_step": step, "epoch": 0.5, "log_history": history, "is_world_process_zero": True}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    if at is not None:
        written(folder, at)
    return folder


def fixture(name: str, to: Path) -> Path:
    """A copy of a checkpoint that the real library made."""
    if not (FIXTURES / name).exists():
        pytest.skip(f"the fixture {name} is not there")
    if (FIXTURES / name).is_dir():
        shutil.copytree(FIXTURES / name, to)
    else:
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(FIXTURES / name, to)
    return to


def written(place: Path, at: float) -> None:
    """Sets the time of a file, or of every file below a folder."""
    for path in [place, *place.rglob("*")]:
        os.utime(path, (at, at))
