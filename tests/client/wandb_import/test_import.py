"""Offline folders of W&B in the real registry."""

import math
import os
import shutil
import time
from datetime import UTC
from pathlib import Path

import pytest
from cairn import Client
from cairn.wandb_import import FileReport, import_folder

from tests.client.formats.wandb_offline.conftest import FIXTURE
from tests.client.formats.wandb_offline.written import Writing

pytest.importorskip("wandb", reason="the extra wandb is not installed")
STARTED = 1_795_000_000


def run_of(live: Client, report: FileReport) -> str:
    return live.find_run(*report.run.split("/", 1)).id


def one(reports: list[FileReport]) -> FileReport:
    (report,) = reports
    return report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "wandb" / "offline-run-20261129_120000-fixture"
    place.mkdir(parents=True)
    shutil.copy(FIXTURE, place)
    return tmp_path / "wandb"


def test_a_run_with_its_config_tags_link_curves_and_checkpoint(live: Client, project: str, folder: Path) -> None:
    report = one(import_folder(live, folder, project=project))
    assert (report.checkpoints, report.known, report.skipped) == (1, 0, [])
    run = live.get_run(run_of(live, report))
    assert run.name == "tiny"
    assert run.raw["config"] == {"lr": 3e-4, "optim": {"name": "adamw", "betas": [0.9, 0.95]}, "gone": 1, "late": 1}
    assert run.tags == {"sft": "true", "small": "true", "wandb.group": "sweep-1", "wandb.notes": "first try, é"}
    (link,) = run.trackers
    assert (link["kind"], link["uri"], link["entity"], link["project"]) == (
        *("wandb", "https://api.wandb.ai"),
        *("team", "llm"),
    )
    (attempt,) = live.list_attempts(run)
    assert (attempt.number, attempt.state) == (1, "finished")
    curves = {curve.name: curve for curve in live.read_series(run)}
    assert curves.keys() == {"train/loss", "nested.a.b", "eval/gsm8k"}
    losses = dict(zip(curves["train/loss"].steps, curves["train/loss"].values, strict=True))
    assert math.isnan(losses[10])
    assert (losses[11], losses[12], losses[86]) == (math.inf, -math.inf, 2.0 / 86)
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    checkpoint = live.get_checkpoint(found)
    assert (checkpoint.step, checkpoint.loss) == (40, 0.05)
    assert checkpoint.metrics == {"nested.a.b": 40.0}
    assert [(score.benchmark, score.value) for score in live.list_scores(found)] == [("gsm8k", 0.1)]
    assert [each["uri"] for each in checkpoint.replicas] == ["oss://bucket/tiny/step-40"]
    assert checkpoint.tags["wandb.aliases"] == "best, latest"
    assert checkpoint.tags["step_from"] == "W&B artifact, metadata step"


def test_the_same_again_changes_nothing(live: Client, project: str, folder: Path) -> None:
    first = one(import_folder(live, folder, project=project))
    again = one(import_folder(live, folder, project=project))
    assert (again.unchanged, again.run, again.attempt) == (True, first.run, 1)
    assert (again.checkpoints, again.points) == (0, 0)


def test_a_growing_run_is_read_on_and_its_newest_checkpoint_waits_for_its_row(
    live: Client, project: str, tmp_path: Path
) -> None:
    writing = Writing("grow1234")
    for step in range(1, 51):
        writing.log(step, {"loss": 1.0 / step})
    writing.artifact("m", aliases=["step_30"])
    writing.artifact("m", aliases=["step_50"])
    writing.save(tmp_path)
    first = one(import_folder(live, tmp_path, project=project))
    assert (first.state, first.checkpoints, first.points) == ("running", 1, 50)
    assert [each.reason for each in first.skipped] == ["the row of its step 50 may still be written; run it again"]
    writing.log(50, {"accuracy": 0.5})
    writing.log(51, {"loss": 0.0})
    writing.save(tmp_path)
    second = one(import_folder(live, tmp_path, project=project))
    assert (second.checkpoints, second.known, second.points) == (1, 1, 2)
    third = one(import_folder(live, tmp_path, project=project))
    assert (third.checkpoints, third.known, third.points) == (0, 2, 0)
    checkpoints = list(live.iter_checkpoints(filter=f"project = '{project}'", order_by="step"))
    assert [each.step for each in checkpoints] == [30, 50]
    assert live.get_checkpoint(checkpoints[1]).metrics == {"accuracy": 0.5}
    writing.exit(0)
    writing.save(tmp_path)
    last = one(import_folder(live, tmp_path, project=project))
    (attempt,) = live.list_attempts(run_of(live, last))
    assert (last.state, attempt.state) == ("finished", "finished")


def test_scores_that_arrive_after_their_checkpoint_are_added_once(live: Client, project: str, tmp_path: Path) -> None:
    writing = Writing("evals123")
    writing.metric("*", "train/global_step")
    writing.log(0, {"train/global_step": 10, "loss": 1.0, "epoch": math.nan})
    writing.artifact("m", aliases=["step_10"])
    writing.log(1, {"train/global_step": 20, "loss": 0.5})
    path = writing.save(tmp_path)
    assert one(import_folder(live, path, project=project)).scores == 0
    writing.log(2, {"train/global_step": 10, "eval/gsm8k": 0.25})
    path = writing.save(tmp_path)
    later = one(import_folder(live, path, project=project))
    assert (later.known, later.scores) == (1, 1)
    assert one(import_folder(live, path, project=project)).scores == 0
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    assert [(score.benchmark, score.value) for score in live.list_scores(found)] == [("gsm8k", 0.25)]


def test_a_run_that_fell_silent_is_lost_and_one_that_writes_again_runs(
    live: Client, project: str, tmp_path: Path
) -> None:
    writing = Writing("lost1234")
    writing.log(1, {"loss": 1.0})
    path = writing.save(tmp_path)
    old = time.time() - 7_200
    os.utime(path, (old, old))
    report = one(import_folder(live, tmp_path, project=project))
    assert report.state == "crashed"
    assert "taken for crashed" in report.state_reason
    (attempt,) = live.list_attempts(run_of(live, report))
    assert (attempt.state, attempt.ended_at is None) == ("lost", False)
    os.utime(path)
    import_folder(live, tmp_path, project=project)
    (attempt,) = live.list_attempts(run_of(live, report))
    assert (attempt.state, attempt.ended_at) == ("running", None)


def test_each_folder_of_a_resumed_run_is_an_attempt(live: Client, project: str, tmp_path: Path) -> None:
    first, second = Writing("twice123", started_at=STARTED), Writing("twice123", started_at=STARTED + 9_000)
    for step in range(1, 61):
        first.log(step, {"loss": 1.0})
    first.artifact("m", aliases=["step_20"], digest="a")
    first.artifact("m", aliases=["step_40"], digest="b")
    first.exit(1)
    for step in range(21, 61):
        second.log(step, {"loss": 2.0})
    second.artifact("m", aliases=["step_40"], digest="c")
    second.exit(0)
    second.save(tmp_path / "b")
    first.save(tmp_path / "a")
    import_folder(live, tmp_path, project=project)
    run = live.find_run(project, "tiny")
    attempts = live.list_attempts(run)
    assert [(each.number, each.state) for each in attempts] == [(1, "failed"), (2, "finished")]
    checkpoints = list(live.iter_checkpoints(filter=f"project = '{project}'", order_by="attempt, step"))
    assert [(each.attempt, each.step, each.superseded) for each in checkpoints] == [
        *((1, 20, False), (1, 40, True)),
        (2, 40, False),
    ]


def test_the_training_step_is_that_of_the_axis_and_not_the_count_of_log_calls(
    live: Client, project: str, tmp_path: Path
) -> None:
    """As the Hugging Face Trainer logs: the metadata of its artifact is that of the last log, which is older."""
    writing = Writing("trainer1")
    writing.metric("*", "train/global_step")
    for count, step in enumerate((100, 200, 300, 300, 400)):
        name = "eval/loss" if count == 3 else "train/loss"
        writing.log(count, {name: step / 100, "train/global_step": step})
    writing.artifact(
        "model-trainer1", aliases=["epoch_1.5", "checkpoint_global_step_300"], metadata={"train/global_step": 200}
    )
    writing.log(5, {"other": 1.0})
    writing.exit()
    writing.save(tmp_path)
    report = one(import_folder(live, tmp_path, project=project))
    assert report.notes == ["steps are those of train/global_step, not W&B's own counter"]
    assert [(each.item, each.reason[:16]) for each in report.skipped] == [("1 rows", "they do not say ")]
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    checkpoint = live.get_checkpoint(found)
    assert (checkpoint.step, checkpoint.loss, checkpoint.metrics) == (300, 3.0, {"eval/loss": 3.0})


def test_what_is_no_checkpoint_or_has_no_certain_step_is_reported(live: Client, project: str, tmp_path: Path) -> None:
    writing = Writing("skips123")
    writing.log(1, {"loss": 1.0})
    writing.artifact("data", type="dataset", aliases=["step_1"])
    writing.artifact("run-skips123-history", type="wandb-history")
    writing.artifact("model-nothing", metadata={"score": 0.5})
    writing.artifact("model-two", aliases=["step_5"], metadata={"iteration": 7})
    writing.exit()
    writing.save(tmp_path)
    report = one(import_folder(live, tmp_path, project=project))
    assert [(each.item, each.reason) for each in report.skipped] == [
        ("artifact data", "of type 'dataset', not a model"),
        ("artifact model-nothing", "nobody says its step: no alias, metadata or name does"),
        ("artifact model-two", "its step is unclear: alias step_5 says step 5, metadata iteration says 7"),
    ]


def test_references_to_files_say_the_tier_that_the_caller_says(live: Client, project: str, tmp_path: Path) -> None:
    writing = Writing("tiers123", host="node-7")
    writing.log(1, {"loss": 1.0})
    refs = {"model.pt": "file:///ckpt/iter_0000010/model.pt", "optim/0.pt": "file:///ckpt/iter_0000010/optim/0.pt"}
    writing.artifact("m", refs=refs)
    writing.exit()
    writing.save(tmp_path)
    import_folder(live, tmp_path, project=project, tier="local")
    (found,) = live.iter_checkpoints(filter=f"project = '{project}'")
    (copy,) = live.get_checkpoint(found).replicas
    assert found.step == 10
    assert {name: copy[name] for name in ("uri", "tier", "host", "bytes", "file_count")} == {
        "uri": "/ckpt/iter_0000010",
        "tier": "local",
        "host": "node-7",
        "bytes": 200,
        "file_count": 2,
    }


def test_names_that_repeat_within_wandb_are_runs_of_their_own(live: Client, project: str, tmp_path: Path) -> None:
    for run_id in ("first123", "secnd123"):
        writing = Writing(run_id, started_at=STARTED + len(run_id))
        writing.log(1, {"loss": 1.0})
        writing.exit()
        writing.save(tmp_path)
    import_folder(live, tmp_path, project=project)
    assert {run.name for run in live.list_runs(project=project)} == {"tiny", "tiny-secnd123"}
    assert all(report.unchanged for report in import_folder(live, tmp_path, project=project))


def test_a_run_that_its_training_recorded_is_joined(live: Client, project: str, tmp_path: Path) -> None:
    from datetime import datetime

    run = live.create_run(project, "tiny")
    live.start_attempt(run, key="job-1", started_at=datetime.fromtimestamp(STARTED - 20, UTC))
    live.register_checkpoint(run, 10, loss=9.0)
    writing = Writing("joined12", started_at=STARTED)
    for step in (10, 20):
        writing.log(step, {"loss": 1.0})
        writing.artifact("m", aliases=[f"step_{step}"], digest=str(step))
    writing.exit(1)
    writing.save(tmp_path)
    report = one(import_folder(live, tmp_path, project=project))
    assert (report.checkpoints, report.known) == (1, 1)
    assert report.notes == [
        "joined to the run 'tiny', which was here already",
        "joined to attempt 1, which the training recorded itself",
    ]
    (attempt,) = live.list_attempts(run)
    assert attempt.state == "running"  # what the training said of itself stays
    first, second = live.iter_checkpoints(filter=f"project = '{project}'", order_by="step")
    assert (live.get_checkpoint(first).loss, live.get_checkpoint(second).loss) == (9.0, 1.0)


def test_both_names_of_the_service_of_wandb_are_one_link(
    live: Client, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_BASE_URL", "https://api.forge.coreweave.com/")
    writing = Writing("names123")
    writing.log(1, {"loss": 1.0})
    writing.save(tmp_path)
    for _ in range(2):
        report = one(import_folder(live, tmp_path, project=project))
    (link,) = live.get_run(run_of(live, report)).trackers
    assert link["uri"] == "https://api.wandb.ai"


def test_secrets_in_a_config_do_not_leave(live: Client, project: str, tmp_path: Path) -> None:
    writing = Writing("secret12")
    writing.config(api_key="abcdefgh12345678", tokenizer="llama", remote="https://me:pass@host/x")
    writing.log(1, {"loss": 1.0})
    writing.save(tmp_path)
    report = one(import_folder(live, tmp_path, project=project))
    config = live.get_run(run_of(live, report)).raw["config"]
    assert config == {"api_key": "***", "tokenizer": "llama", "remote": "https://***@host/x"}


def test_what_is_wrong_with_one_file_does_not_stop_the_rest(live: Client, project: str, folder: Path) -> None:
    (folder / "broken").mkdir()
    (folder / "broken" / "run-x.wandb").write_bytes(b"not one of them, but long enough")
    (folder / "young").mkdir()
    (folder / "young" / "run-y.wandb").write_bytes(b":W&B")
    reports = {report.file: report for report in import_folder(live, folder, project=project)}
    assert "no file of W&B" in reports["broken/run-x.wandb"].skipped[0].reason
    assert "does not say which run" in reports["young/run-y.wandb"].skipped[0].reason
    assert reports["offline-run-20261129_120000-fixture/run-fixture.wandb"].checkpoints == 1
