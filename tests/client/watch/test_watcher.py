"""A watcher against the real service: what appears below a root is recorded, once, as what it is."""

import json
import math
import os
import time
from pathlib import Path

import pytest
from cairn import Client, ConnectionFailed, Retries
from cairn.watch import Watched, Watcher

from tests.client.scan.trees import LONG_AGO, fixture, safetensors, trainer, written
from tests.client.watch.looks import Look, ckpt, identities, kinds, recorded


def test_what_appears_is_recorded_once_across_restarts(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    assert look() == []
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    assert kinds(look()) == ["recorded", "curves"]
    assert look() == []
    trainer(ckpt(tmp_path, "checkpoint-20"), 20, at=LONG_AGO + 60)
    assert kinds(look()) == ["recorded", "curves"]
    assert identities(live, project) == [("r", 1, 10, "committed"), ("r", 1, 20, "committed")]


def test_progress_is_told_by_the_checkpoints_that_are_opened(live: Client, project: str, tmp_path: Path) -> None:
    for step in (10, 20):
        trainer(ckpt(tmp_path, f"checkpoint-{step}"), step, at=LONG_AGO + step)
    counts: list[int] = []
    with Watcher(Watched(str(tmp_path / "ckpt"), project, "r", "shared"), tmp_path / "watch.db") as watcher:
        list(watcher.look(live, counts.append))
        list(watcher.look(live, counts.append))
    assert counts == [1, 2]


def test_a_lost_state_file_costs_nothing_but_time(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    look()
    (tmp_path / "state" / "watch.db").unlink()
    assert "recorded" not in kinds(look())
    assert identities(live, project) == [("r", 1, 10, "committed")]


def test_what_has_not_changed_is_not_opened_again(
    live: Client, look: Look, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    look()
    opened: list[str] = []

    def looked(tree: object, candidates: object) -> list[object]:
        opened.extend(each.path for each in candidates)  # type: ignore[attr-defined]
        return []

    monkeypatch.setattr("cairn.watch.folders.look_at_all", looked)
    look()
    (ckpt(tmp_path, "checkpoint-10") / "cairn.json").write_text("{}")  # small files beside it come later
    look()
    assert opened == []


def test_a_save_under_way_is_pending_until_its_files_show_it_whole(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    whole = fixture("safetensors_sharded", ckpt(tmp_path, "step-10"))
    shard = (whole / "model-00002-of-00002.safetensors").read_bytes()
    (whole / "model-00002-of-00002.safetensors").unlink()
    assert kinds(look()) == ["pending"]
    assert look() == []
    (whole / "model-00002-of-00002.safetensors").write_bytes(shard)
    events = look()
    assert kinds(events) == ["recorded"], events
    (event,) = events
    assert event.kind == "recorded"
    assert event.facts["because"] == "its files show that it is whole"
    assert identities(live, project) == [("r", 1, 10, "committed")]


def test_what_cannot_show_that_it_is_whole_is_taken_once_it_is_quiet(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    written(fixture("accelerate_state", ckpt(tmp_path, "step_10")), time.time())
    assert kinds(look(quiet_seconds=3600.0)) == ["pending"]
    (event,) = look(quiet_seconds=0.0)
    assert event.facts["because"] == "it has not changed for a while"
    assert identities(live, project) == [("r", 1, 10, "committed")]


def test_a_step_written_again_is_a_new_attempt_that_says_what_it_assumes(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    for place, step in enumerate((100, 200, 300)):
        trainer(ckpt(tmp_path, f"checkpoint-{step}"), step, at=LONG_AGO + place * 600)
    look()
    trainer(ckpt(tmp_path, "checkpoint-200"), 200, at=LONG_AGO + 9000, loss=1.5)
    assert kinds(look())[:2] == ["attempt", "recorded"]
    trainer(ckpt(tmp_path, "checkpoint-300"), 300, at=LONG_AGO + 9600, loss=1.4)
    look()
    superseded = {(each.attempt, each.step): each.superseded for each in recorded(live, project)}
    assert superseded == {(1, 100): False, (1, 200): True, (1, 300): True, (2, 200): False, (2, 300): False}
    attempt = live.list_attempts(live.find_run(project, "r"))[1]
    assert attempt.raw["resumed_from"]["step"] == 100
    assert "assumed" in attempt.raw["reason"]
    assert look() == []


def test_an_attempt_that_a_supervisor_opened_is_the_one_of_what_follows(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    trainer(ckpt(tmp_path, "checkpoint-100"), 100, at=LONG_AGO)
    trainer(ckpt(tmp_path, "checkpoint-200"), 200, at=LONG_AGO + 600)
    look()
    run = live.find_run(project, "r")
    live.start_attempt(run, key="job-2", resumed_from={"attempt": 1, "step": 200})
    trainer(ckpt(tmp_path, "checkpoint-300"), 300, at=LONG_AGO + 1200)
    look()
    assert identities(live, project)[-1] == ("r", 2, 300, "committed")


def test_the_log_gives_a_checkpoint_its_loss_and_the_run_its_curve(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    log.write_text(
        "".join(f" iteration {s}/ 1000 | learning rate: 1e-4 | lm loss: {3 - s / 100} |\n" for s in (10, 20))
    )
    safetensors(ckpt(tmp_path, "iter_20.safetensors"), step=20)
    look(logs=(str(log),))
    assert recorded(live, project)[0].loss == 2.8
    safetensors(ckpt(tmp_path, "iter_30.safetensors"), step=30)
    look(logs=(str(log),))
    assert recorded(live, project)[1].loss is None
    with log.open("a") as file:
        file.write(" iteration 30/ 1000 | lm loss: NaN |\n iteration 40/ 1000 | lm loss: 2.")
    look(logs=(str(log),))
    assert math.isnan(recorded(live, project)[1].loss or 0.0)
    with log.open("a") as file:
        file.write("5 |\n")
    look(logs=(str(log),))
    (curve,) = live.read_series(live.find_run(project, "r"), "loss")
    assert curve.steps == (10, 20, 30, 40)
    assert [curve.values[place] for place in (0, 1, 3)] == [2.9, 2.8, 2.5]
    assert math.isnan(curve.values[2])


def test_a_log_that_goes_back_is_a_new_attempt_before_its_first_save(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    lines = [f" iteration {step}/ 1000 | lm loss: 2.{step} |\n" for step in (10, 20, 30, 40)]
    log.write_text("".join(lines))
    safetensors(ckpt(tmp_path, "iter_20.safetensors"), step=20)
    look(logs=(str(log),))
    with log.open("a") as file:
        file.write(" iteration 30/ 1000 | lm loss: 1.5 |\n")
    look(logs=(str(log),))
    safetensors(ckpt(tmp_path, "iter_30.safetensors"), step=30)
    look(logs=(str(log),))
    curves = {each.attempt: each.steps for each in live.read_series(live.find_run(project, "r"), "loss")}
    assert curves == {1: (10, 20, 30, 40), 2: (30,)}
    assert identities(live, project) == [("r", 1, 20, "committed"), ("r", 2, 30, "committed")]
    assert recorded(live, project)[1].loss == 1.5


def test_the_trainers_own_history_becomes_curves_and_scores(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    for step in (10, 20):
        folder = trainer(ckpt(tmp_path, f"checkpoint-{step}"), step)
        history = [entry for s in range(5, step + 1, 5) for entry in ({"step": s, "loss": 3 - s / 10},)]
        history += [{"step": s, "eval_loss": 2 - s / 100, "eval_runtime": 1.0} for s in range(10, step + 1, 10)]
        state = {"global_step": step, "log_history": history, "is_world_process_zero": True, "max_steps": 100}
        (folder / "trainer_state.json").write_text(json.dumps(state))
        written(folder, LONG_AGO + step)
        assert kinds(look())[0] == "recorded"
    (curve,) = live.read_series(live.find_run(project, "r"), "loss")
    assert curve.steps == (5, 10, 15, 20)
    scores = [live.list_scores(each) for each in recorded(live, project)]
    assert [[(s.benchmark, s.value) for s in each] for each in scores] == [[("eval", 1.9)], [("eval", 1.8)]]


def test_a_metric_folder_of_mlflow_is_read_on(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    metrics = tmp_path / "mlruns/0/abc/metrics"
    (metrics / "eval").mkdir(parents=True)
    (metrics / "loss").write_text("1700000000000 2.5 10\n1700000001000 2.4 20\n")
    (metrics / "eval" / "acc").write_text("1700000000000 0.5 10\nnonsense\n")
    safetensors(ckpt(tmp_path, "step_10.safetensors"), step=10)
    look(logs=(str(tmp_path / "mlruns/0/abc"),))
    curves = {each.name: each.values for each in live.read_series(live.find_run(project, "r"))}
    assert curves == {"loss": (2.5, 2.4), "eval/acc": (0.5,)}
    assert recorded(live, project)[0].loss == 2.5


def test_results_beside_a_checkpoint_and_in_a_folder_find_their_checkpoint(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    look()
    inside = ckpt(tmp_path, "checkpoint-10") / "eval"
    inside.mkdir()
    (inside / "results.csv").write_text("benchmark,value\ngsm8k,0.5\n")
    outside = tmp_path / "evals"
    outside.mkdir()
    (outside / "late.csv").write_text("step,benchmark,value\n20,mmlu,0.3\n")
    (outside / "broken.json").write_text("{")
    events = look(evals=(str(outside),))
    assert kinds(events) == ["evals"]
    trainer(ckpt(tmp_path, "checkpoint-20"), 20, at=LONG_AGO + 60)
    assert "evals" in kinds(look(evals=(str(outside),)))
    scores = {each.step: [s.benchmark for s in live.list_scores(each)] for each in recorded(live, project)}
    assert scores == {10: ["gsm8k"], 20: ["mmlu"]}
    assert look(evals=(str(outside),)) == []


def test_what_was_removed_is_told_and_its_record_stays(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    look()
    for path in sorted(ckpt(tmp_path, "checkpoint-10").iterdir()):
        path.unlink()
    ckpt(tmp_path, "checkpoint-10").rmdir()
    assert kinds(look()) == ["gone"]
    assert identities(live, project) == [("r", 1, 10, "committed")]


def test_a_service_that_is_away_costs_no_news(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(" iteration 10/ 1000 | lm loss: 2.5 |\n")
    safetensors(ckpt(tmp_path, "iter_10.safetensors"), step=10)
    with Client("http://127.0.0.1:9", "t", retries=Retries(count=0)) as nobody, pytest.raises(ConnectionFailed):
        look(nobody, logs=(str(log),))
    assert kinds(look(logs=(str(log),))) == ["recorded", "curves"]
    assert recorded(live, project)[0].loss == 2.5


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read_is_said_once(look: Look, tmp_path: Path) -> None:
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    locked = ckpt(tmp_path, "checkpoint-20")
    locked.mkdir(mode=0)
    try:
        assert "problem" in kinds(look())
        assert "problem" not in kinds(look())
    finally:
        locked.chmod(0o700)


def test_a_log_that_is_not_there_yet_is_said_once(look: Look, tmp_path: Path) -> None:
    assert kinds(look(logs=(str(tmp_path / "no.log"),))) == ["problem"]
    assert look(logs=(str(tmp_path / "no.log"),)) == []
