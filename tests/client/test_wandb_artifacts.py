"""Checkpoints as W&B artifacts by reference, with the real library, offline."""

import math
import subprocess
import sys
from pathlib import Path

import pytest
from cairn.formats.wandb_offline import artifact_place, read_folder, step_of
from cairn.wandb_artifacts import aliases_of, log_reference

TRAINING = """
import math, os, pathlib
os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB__SERVICE_WAIT": "300"}
import wandb
from cairn.wandb_artifacts import log_reference
run = wandb.init(project="llm", entity="team")
folder = pathlib.Path("ckpt/step-100")
folder.mkdir(parents=True)
(folder / "model.pt").write_bytes(b"x" * 10)
(folder / "optim.pt").write_bytes(b"y" * 20)
run.log({"loss": 1.0}, step=100)
print(log_reference(folder, step=100, loss=math.nan, metrics={"gsm8k": 0.5}, aliases=["best", "a/b"]))
print(log_reference("oss://bucket/ckpt/step-200", step=200, name="other name"))
print(log_reference(folder / "gone", step=300))
run.finish()
print(log_reference(folder, step=400))
"""


@pytest.fixture(scope="module")
def logged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], str]:
    pytest.importorskip("wandb", reason="the extra wandb is not installed")
    folder = tmp_path_factory.mktemp("training")
    done = subprocess.run([sys.executable, "-c", TRAINING], cwd=folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout.split(), done.stderr


def test_an_artifact_by_reference_says_step_place_and_aliases(logged: tuple[Path, list[str], str]) -> None:
    folder, answers, _ = logged
    assert answers == ["True", "True", "False", "False"]
    first, second = read_folder(next((folder / "wandb").glob("offline-run-*"))).artifacts
    assert first.type == "model"
    assert set(first.aliases) == {"latest", "step_100", "best", "a-b"}
    assert (step_of(first).step, artifact_place(first)) == (100, str(folder.resolve() / "ckpt/step-100"))
    assert sorted(entry.path for entry in first.entries) == ["model.pt", "optim.pt"]
    assert {key: first.metadata[key] for key in ("step", "loss", "gsm8k")} == {"step": 100, "loss": "NaN", "gsm8k": 0.5}
    assert (second.name, step_of(second).step) == ("other-name", 200)
    assert artifact_place(second) == "oss://bucket/ckpt/step-200"


def test_nothing_is_uploaded(logged: tuple[Path, list[str], str]) -> None:
    folder, _, _ = logged
    first, _ = read_folder(next((folder / "wandb").glob("offline-run-*"))).artifacts
    assert all(entry.ref for entry in first.entries)


def test_a_place_that_is_missing_and_a_run_that_ended_are_warned_of_and_do_no_harm(
    logged: tuple[Path, list[str], str],
) -> None:
    _, _, said = logged
    assert "the checkpoint of step 300 could not be logged to W&B" in said
    assert "no W&B run is open in this process" in said


def test_without_wandb_nothing_is_imported_and_nothing_happens() -> None:
    code = "import sys, cairn.wandb_artifacts as a; print(a.log_reference('/x', step=1), 'wandb' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_it_is_off_unless_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    import cairn

    assert "wandb_artifacts" not in cairn.__all__
    assert log_reference("/nowhere", step=1, loss=math.inf, run=object()) is False


def test_each_alias_is_there_once() -> None:
    assert aliases_of(7, ["best", "latest", "best", ""]) == ["latest", "step_7", "best"]
