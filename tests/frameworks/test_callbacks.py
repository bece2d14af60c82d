"""Trainings with the real Trainer and Lightning, killed and resumed: the registry then holds exactly what happened."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cairn import Client
from cairn.recorder import engine
from cairn.spool.backlog import Backlog
from cairn.spool.flush import flush
from cairn.spool.places import spool_folders
from cairn.types import Checkpoint, Run

from tests.frameworks.service import address, running_service

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
ROOT = Path(__file__).parents[2]
FAILED, KILLED = 1, -9


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """Where the service is, once it is there."""
    with address(tmp_path / "home") as found:
        own = {**found, "CAIRN_SPOOL": str(tmp_path / "spool")}
        for name, value in own.items():
            monkeypatch.setenv(name, value)
        yield own


@pytest.fixture
def client(service: dict[str, str]) -> Iterator[Client]:
    with running_service(service), Client() as client:
        yield client


def train(script: str, tmp_path: Path, **asked: Any) -> int:
    """Runs one process of training to its end; answers how it ended."""
    own = {"HOME": str(tmp_path / "home"), "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    asked = {"folder": str(tmp_path / "out"), **asked}
    command = [sys.executable, str(ROOT / "tests" / "frameworks" / script), json.dumps(asked)]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode in (0, FAILED if "fail_at" in asked else KILLED), done.stderr[-3000:]
    assert "could not record" not in done.stderr, done.stderr[-3000:]
    return done.returncode


def recorded(client: Client) -> dict[tuple[int, int], Checkpoint]:
    """Everything, also what a process could not send in the seconds that it has for that at its end."""
    done = flush(client)
    assert (done.kept, done.refused) == ([], 0), done
    found = client.iter_checkpoints(filter="project = 'llm'", order_by="attempt, step")
    return {(each.attempt or 0, each.step or 0): client.get_checkpoint(each) for each in found}


def run_of(client: Client) -> Run:
    return client.find_run("llm", "tiny")


def by_hand(tmp_path: Path, step: int) -> tuple[Any, Any, Any]:
    """The callback, and what a Trainer hands over, without a Trainer."""
    from cairn.callbacks.transformers import CairnCallback

    args = SimpleNamespace(
        to_dict=dict, push_to_hub=False, hub_model_id=None, output_dir=str(tmp_path), load_best_model_at_end=False
    )
    state = SimpleNamespace(global_step=step, is_world_process_zero=True, best_model_checkpoint=None)
    return CairnCallback("llm", "tiny", capture=False), args, state


def kept_of_kind(tmp_path: Path, kind: str) -> list[dict[str, Any]]:
    """What the spools of this process hold once it has ended with nobody listening."""
    engine.shut_down(120)
    folders = spool_folders(tmp_path / "spool")
    return [each.record for one in folders for each in Backlog(one).records() if each.record["kind"] == kind]


def test_a_trainer_that_was_killed_and_resumed(client: Client, tmp_path: Path) -> None:
    assert train("train_transformers.py", tmp_path, steps=8, die_at=5) == KILLED
    assert train("train_transformers.py", tmp_path, steps=8, resume=str(tmp_path / "out" / "checkpoint-4")) == 0
    found = recorded(client)
    assert list(found) == [(1, 2), (1, 4), (2, 6), (2, 8)]
    assert {each.state for each in found.values()} == {"committed"}
    assert not any(each.superseded for each in found.values())
    _, second = client.list_attempts(run_of(client))
    assert second.raw["resumed_from"]["step"] == 4
    assert second.raw["resumed_from"]["attempt"] == 1
    assert second.state == "finished"
    newest = found[2, 8]
    assert newest.pieces["optimizer"] == "present"
    assert newest.replicas[0]["uri"] == str(tmp_path / "out" / "checkpoint-8")
    assert newest.loss is not None
    assert newest.raw["tokens_seen"] == 8 * 2 * 8
    assert newest.raw["config"] is not None
    scores = {(each.benchmark, each.metric) for each in client.list_scores(newest)}
    assert ("eval", "loss") in scores
    curves = {each.attempt: each.steps for each in client.read_series(run_of(client), "loss")}
    assert curves[2] == (5, 6, 7, 8)
    assert {1, 2, 3, 4} <= set(curves[1]) <= {1, 2, 3, 4, 5}  # what was logged before the last save is never lost
    said = json.loads((tmp_path / "out" / "checkpoint-8" / "cairn.json").read_text())
    assert (said["run"]["name"], said["attempt"], said["step"]) == ("tiny", 2, 8)


def test_the_best_model_is_evaluated_as_what_it_is(client: Client, tmp_path: Path) -> None:
    assert train("train_transformers.py", tmp_path, steps=6, limit=1, best=True, evaluate=True) == 0
    found = recorded(client)
    assert list(found) == [(1, 2), (1, 4), (1, 6)]
    finals = {
        step: [each.value for each in client.list_scores(checkpoint) if each.benchmark == "eval_final"]
        for (_, step), checkpoint in found.items()
    }
    evals = {
        step: next(each.value for each in client.list_scores(checkpoint) if each.metric == "loss")
        for (_, step), checkpoint in found.items()
    }
    best = min(evals, key=lambda step: evals[step])
    assert [step for step, values in finals.items() if values] == [best]


def test_a_trainer_that_fails_is_a_failed_attempt_with_its_evaluations(client: Client, tmp_path: Path) -> None:
    """One of a step that was not saved is a point of a curve, also where training never comes to its end."""
    assert train("train_transformers.py", tmp_path, steps=8, save_steps=4, fail_at=5) == FAILED
    assert list(recorded(client)) == [(1, 4)]
    (attempt,) = client.list_attempts(run_of(client))
    assert attempt.state == "failed"
    (evaluated,) = client.read_series(run_of(client), "eval/loss")
    assert evaluated.steps == (2,)


def test_an_evaluation_of_what_was_resumed_goes_to_the_checkpoint_of_the_earlier_execution(
    service: dict[str, str], tmp_path: Path
) -> None:
    callback, args, state = by_hand(tmp_path, 4)
    callback.on_train_begin(args, state, None)
    callback.on_evaluate(args, state, None, metrics={"eval_loss": 0.5, "eval_runtime": 1.0})
    (kept,) = kept_of_kind(tmp_path, "scores")
    assert (kept["step"], kept["scores"][0]["metric"]) == (4, "loss")


def test_a_training_that_came_to_its_end_is_finished_when_the_trainer_trains_once_more(
    service: dict[str, str], tmp_path: Path
) -> None:
    callback, args, state = by_hand(tmp_path, 4)
    for ends in (True, False):
        callback.on_train_begin(args, state, None)
        if ends:
            callback.on_train_end(args, state, None)
    callback.on_train_begin(args, state, None)
    ended = [each["changes"]["state"] for each in kept_of_kind(tmp_path, "finish")]
    assert ended[:2] == ["finished", "stopped"]


def test_a_lightning_training_that_was_killed_and_resumed(client: Client, tmp_path: Path) -> None:
    assert train("train_lightning.py", tmp_path, steps=8, die_at=5) == KILLED
    assert train("train_lightning.py", tmp_path, steps=8, resume=str(tmp_path / "out" / "last.ckpt")) == 0
    found = recorded(client)
    assert list(found) == [(1, 2), (1, 4), (2, 6), (2, 8)]
    assert {each.state for each in found.values()} == {"committed"}
    _, second = client.list_attempts(run_of(client))
    assert second.raw["resumed_from"]["step"] == 4
    assert second.state == "finished"
    newest = found[2, 8]
    assert newest.format == "lightning"
    assert newest.replicas[0]["uri"].startswith(str(tmp_path / "out" / "every-step=8"))
    assert newest.pieces["optimizer"] == "present"
    assert newest.raw["lr"] == 0.01
    assert "train_loss" in newest.raw["metrics"]
    curves = {each.attempt: each for each in client.read_series(run_of(client), "loss")}
    assert curves[2].steps == (5, 6, 7, 8)
    assert curves[2].values[-1] == pytest.approx(newest.raw["loss"])  # the curve and the checkpoint mean the same step
    assert {1, 2, 3} <= set(curves[1].steps) <= {1, 2, 3, 4, 5}  # Lightning saves before it logs the step's own


def test_without_a_service_training_goes_on_and_is_recorded_later(service: dict[str, str], tmp_path: Path) -> None:
    """Everything waits on disk; the next process of this host sends it."""
    assert train("train_transformers.py", tmp_path, steps=4) == 0
    with running_service(service), Client() as client:
        assert train("train_transformers.py", tmp_path, steps=6, resume=str(tmp_path / "out" / "checkpoint-4")) == 0
        assert list(recorded(client)) == [(1, 2), (1, 4), (2, 6)]


def run_example(name: str, tmp_path: Path, *arguments: str) -> None:
    own = {"HOME": str(tmp_path / "home"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(ROOT / "examples" / name), str(tmp_path / "out"), *arguments]
    done = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_example_of_plain_pytorch_is_resumed_where_it_was_left(client: Client, tmp_path: Path) -> None:
    run_example("plain_pytorch.py", tmp_path, "--steps", "20")
    run_example("plain_pytorch.py", tmp_path, "--steps", "40", "--resume", str(tmp_path / "out" / "step-20.pt"))
    found = recorded(client)
    assert list(found) == [(1, 10), (1, 20), (2, 30), (2, 40)]
    newest = found[2, 40]
    assert newest.raw["data_cursor"] == {"consumed_samples": 640}
    assert newest.pieces["optimizer"] == "present"
    assert newest.raw["save_seconds"] > 0
    curves = {each.attempt: len(each.steps) for each in client.read_series(client.find_run("llm", "plain"), "loss")}
    assert curves == {1: 20, 2: 20}


def test_the_example_of_accelerate_records_what_its_main_process_saved(client: Client, tmp_path: Path) -> None:
    run_example("accelerate_training.py", tmp_path)
    found = recorded(client)
    assert list(found) == [(1, 8), (1, 16)]
    assert found[1, 16].state == "committed"


def test_the_two_lines_for_megatron_record_around_its_own_save(client: Client, tmp_path: Path) -> None:
    """Megatron itself needs GPUs: a package of its names stands in."""
    package = tmp_path / "megatron" / "training"
    package.mkdir(parents=True)
    (tmp_path / "megatron" / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "global_vars.py").write_text(
        "from types import SimpleNamespace\n"
        f"args = SimpleNamespace(save={str(tmp_path / 'out')!r}, load=None, iteration=0, consumed_train_samples=0, "
        "seq_length=8, lr=1e-4, wandb_api_key='s3cret')\n"
        "def get_args():\n    return args\n"
    )
    (package / "checkpointing.py").write_text(
        "import os\nfrom megatron.training.global_vars import get_args\n"
        "def save_checkpoint(iteration, model, optimizer):\n"
        "    folder = os.path.join(get_args().save, f'iter_{iteration:07d}')\n"
        "    os.makedirs(folder)\n"
        "    open(os.path.join(folder, 'metadata.json'), 'w').write('{}')\n"
    )
    (package / "training.py").write_text("from megatron.training.checkpointing import save_checkpoint\n")
    script = tmp_path / "pretrain.py"
    script.write_text(
        "import cairn.callbacks.megatron\n"
        "assert cairn.callbacks.megatron.record('llm', 'tiny') == 2\n"
        "from megatron.training import global_vars, training\n"
        "for iteration in (10, 20):\n"
        "    global_vars.args.consumed_train_samples = iteration * 4\n"
        "    training.save_checkpoint(iteration, None, None)\n"
    )
    own = {"HOME": str(tmp_path / "home"), "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, str(script)], env=os.environ | own, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = recorded(client)
    assert list(found) == [(1, 10), (1, 20)]
    assert found[1, 20].raw["tokens_seen"] == 20 * 4 * 8
    assert found[1, 20].raw["data_cursor"] == {"consumed_samples": 80}
    assert "s3cret" not in json.dumps(client.get_run(run_of(client)).raw)
