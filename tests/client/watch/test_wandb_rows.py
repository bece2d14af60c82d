"""A W&B run's folder as the log of a watched training."""

from pathlib import Path

import pytest
from cairn import Client

from tests.client.formats.wandb_offline.conftest import FIXTURE
from tests.client.formats.wandb_offline.written import Writing
from tests.client.scan.trees import safetensors
from tests.client.watch.looks import Look, ckpt, kinds, recorded


@pytest.fixture
def writing() -> Writing:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    return Writing("watched1")


def test_a_folder_of_wandb_is_read_on_while_it_grows(
    live: Client,
    project: str,
    look: Look,
    tmp_path: Path,
    writing: Writing,
) -> None:
    folder = tmp_path / "wandb/offline-run-1"
    writing.metric("*", "train/global_step")
    for index, step in enumerate((5, 10)):
        writing.log(index, {"train/global_step": step, "train/loss": step / 10})
    writing.save(folder)
    safetensors(ckpt(tmp_path, "step_10.safetensors"), step=10)
    look(logs=(str(folder),))
    assert recorded(live, project)[0].loss == 1.0
    assert look(logs=(str(folder),)) == []
    writing.log(2, {"train/global_step": 15, "train/loss": 0.5})
    writing.save(folder)
    assert kinds(look(logs=(str(folder),))) == ["curves"]
    curves = {each.name: (each.steps, each.values) for each in live.read_series(live.find_run(project, "r"))}
    assert curves == {"loss": ((5, 10, 15), (0.5, 1.0, 0.5))}


def test_a_folder_that_is_none_is_said_once(live: Client, look: Look, tmp_path: Path) -> None:
    broken = tmp_path / "run-x.wandb"
    broken.write_bytes(b"not what it is called")
    (event,) = look(logs=(str(broken),))
    assert (event.kind, "no file of W&B" in event.text) == ("problem", True)
    assert look(logs=(str(broken),)) == []


def test_the_committed_file_gives_its_curves(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    safetensors(ckpt(tmp_path, "step_40.safetensors"), step=40)
    look(logs=(str(FIXTURE),))
    assert recorded(live, project)[0].loss == 0.05
