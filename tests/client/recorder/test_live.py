"""What a training loop records arrives at the real service as it was."""

import json
import math
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cairn
import pytest
from cairn import Client
from cairn.recorder import Recorder, engine
from cairn.spool.backlog import Backlog
from cairn.spool.flush import list_refused

from tests.client.recorder.jobs import environment, run_job
from tests.client.until import LATEST, until

OFF = {"git": False, "machine": False, "libraries": False}


def begin(project: str, run: str = "r", **more: Any) -> Recorder:
    recorder = cairn.start(project, run, **{"capture": OFF, **more})
    assert isinstance(recorder, Recorder)
    return recorder


def checkpoints(live: Client, project: str) -> dict[tuple[int, int, str], dict[str, Any]]:
    """(attempt, step, kind) to everything that is known of it."""
    found = {}
    for each in live.iter_checkpoints(filter=f"project = '{project}'"):
        found[each.attempt or 0, each.step or 0, each.kind or ""] = live.get_checkpoint(each).raw
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    import shutil

    source = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "hf_trainer" / "checkpoint-4"
    return Path(shutil.copytree(source, tmp_path / "ckpt" / "checkpoint-4"))


def test_a_whole_execution_is_recorded(live: Client, project: str, folder: Path) -> None:
    config = SimpleNamespace(lr=3e-4, hub_token="hf_" + "x" * 30, betas=(0.9, 0.95), out=Path("/ckpt"))
    run = begin(project, config=config, data={"web": 0.6, "code": 0.4}, owner="ana", tags={"phase": "pretrain", "n": 3})
    for step in range(1, 5):
        run.log(step, loss=2.0 / step, lr=3e-4)
    assert run.saving(4)
    time.sleep(0.01)
    cursor = {"epoch": 0, "shards": [3, 1]}
    assert run.saved(folder, step=4, loss=0.5, tokens=4096, cursor=cursor, scores={"gsm8k.exact_match": 0.25}, ppl=1.6)
    run.finish()
    assert engine.engine().flush(LATEST)

    found = checkpoints(live, project)
    assert list(found) == [(1, 4, "archive")]
    one = found[1, 4, "archive"]
    assert (one["state"], one["loss"], one["tokens_seen"], one["data_cursor"]) == ("committed", 0.5, 4096, cursor)
    assert one["config"] == {"lr": 3e-4, "hub_token": "***", "betas": [0.9, 0.95], "out": "/ckpt"}
    assert one["data_version"]["mix"]["web"]["weight"] == 0.6
    assert one["metrics"] == {"ppl": 1.6}
    assert one["format"] == "hf-trainer"
    assert one["pieces"]["optimizer"] == "present"
    assert one["replicas"][0]["uri"] == str(folder)
    assert one["replicas"][0]["bytes"] > 0
    assert one["stall_seconds"] >= 0.01
    assert [(each["benchmark"], each["metric"], each["value"]) for each in one["scores"]] == [
        ("gsm8k", "exact_match", 0.25)
    ]
    recorded = live.find_run(project, "r")
    assert (recorded.owner, recorded.tags) == ("ana", {"phase": "pretrain", "n": "3"})
    (curve,) = live.read_series(recorded, "loss")
    assert (curve.steps, curve.values) == ((1, 2, 3, 4), (2.0, 1.0, 2.0 / 3, 0.5))
    (attempt,) = live.list_attempts(recorded)
    assert (attempt.state, attempt.raw["step"]) == ("finished", 4)


def test_cairn_json_stands_beside_the_files_and_says_what_was_recorded(
    live: Client, project: str, folder: Path
) -> None:
    from cairn.formats.checkpoints import cairn_json

    run = begin(project)
    run.saved(folder, step=4, loss=math.nan, scores={"piqa": math.inf}, digest="sha256")
    assert run.flush(LATEST)
    said = cairn_json.parse((folder / "cairn.json").read_bytes())
    assert (said["project"], said["run"]["name"], said["attempt"], said["step"]) == (project, "r", 1, 4)
    assert (said["loss"], said["scores"][0]["value"]) == ("NaN", "Infinity")
    assert {each["path"] for each in said["manifest"]} >= {"trainer_state.json"}
    (one,) = checkpoints(live, project).values()
    assert one["id"] == said["id"]
    assert one["replicas"][0]["digest"]["algorithm"] == "sha256"


def test_a_step_that_the_files_contradict_is_flagged(live: Client, project: str, folder: Path, said: list[str]) -> None:
    run = begin(project)
    run.saved(folder, step=7, pieces={"optimizer": "absent"})
    assert run.flush(LATEST)
    (one,) = checkpoints(live, project).values()
    assert "saved as step 7, but trainer_state.json" in one["notes"]
    assert "told that optimizer is absent; the files say present" in one["notes"]
    assert one["pieces"]["optimizer"] == "absent"


def test_what_the_training_says_of_its_pieces_is_kept_and_the_note_agrees(
    live: Client, project: str, folder: Path
) -> None:
    (folder / "optimizer.pt").unlink()
    whole = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
    run = begin(project)
    run.saved(folder, step=4, pieces=whole, cursor={"offset": 4})
    assert run.flush(LATEST)
    (one,) = checkpoints(live, project).values()
    assert one["pieces"] == whole
    assert one["notes"] == "told that optimizer is present; the files say absent"
    evidence = one["piece_evidence"]["optimizer"]["evidence"]
    assert evidence.startswith("said by the training; the files say absent: no optimizer.pt")


def test_a_save_in_files_of_its_own_is_committed_with_what_the_training_says(
    live: Client, project: str, tmp_path: Path
) -> None:
    from tests.client.formats.checkpoints.sources import files_of

    for name, content in files_of("safetensors_single").items():
        (tmp_path / name).write_bytes(content)
    for name in ("optimizer.json", "trainer_state.json"):
        (tmp_path / name).write_text('{"step": 20}')
    run = begin(project)
    run.saved(tmp_path, step=20, pieces={"optimizer": "present", "data_position": "present"})
    assert run.flush(LATEST)
    (one,) = checkpoints(live, project).values()
    told = {"weights": "present", "optimizer": "present", "data_position": "present", "random_state": "unknown"}
    assert (one["state"], one["pieces"], one["notes"]) == ("committed", told, None)


def test_a_save_whose_files_are_not_whole_yet_is_pending_until_they_are(
    live: Client, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import shutil

    monkeypatch.setattr(engine, "UNFINISHED_SECONDS", 0.0)
    source = Path(__file__).parents[1] / "fixtures" / "checkpoints" / "dcp"
    whole = next(each.parent for each in sorted(source.rglob(".metadata")))
    place = Path(shutil.copytree(whole, tmp_path / "step-3"))
    shard = next(place.glob("*.distcp"))
    content = shard.read_bytes()
    shard.write_bytes(content[: len(content) // 2])  # an asynchronous save still writes
    run = begin(project)
    run.saved(place, step=3)
    assert run.flush(LATEST)
    (one,) = checkpoints(live, project).values()
    assert one["state"] == "pending"
    shard.write_bytes(content)
    until(lambda: [each["state"] for each in checkpoints(live, project).values()] != ["pending"])
    (one,) = checkpoints(live, project).values()
    assert one["state"] == "committed"


def test_values_that_are_not_finite_arrive_as_they_are(live: Client, project: str) -> None:
    run = begin(project)
    for step, loss in enumerate((1.0, math.nan, math.inf, -math.inf), start=1):
        run.log(step, loss=loss)
    run.saved(step=4, loss=math.nan, lr=math.inf, metrics={"grad_norm": math.nan})
    assert run.flush(LATEST)
    (curve,) = live.read_series(live.find_run(project, "r"), "loss")
    assert [str(value) for value in curve.values] == ["1.0", "nan", "inf", "-inf"]
    (one,) = checkpoints(live, project).values()
    assert (one["loss"], one["lr"], one["metrics"]) == ("NaN", "Infinity", {"grad_norm": "NaN"})


def test_going_back_in_steps_opens_an_attempt_that_says_what_it_went_on_from(live: Client, project: str) -> None:
    run = begin(project)
    for step in (100, 200, 300):
        run.log(step, loss=1.0)
        run.saved(step=step)
    for step in (200, 250, 300):  # training loaded 200 again, in the same process
        run.log(step + 1, loss=0.9)
        run.saved(step=step + 50)
    assert run.flush(LATEST)
    assert [key[:2] for key in sorted(checkpoints(live, project))] == [
        (1, 100),
        (1, 200),
        (1, 300),
        (2, 250),
        (2, 300),
        (2, 350),
    ]
    recorded = live.find_run(project, "r")
    first, second = live.list_attempts(recorded)
    assert (first.state, first.raw["live_through_step"]) == ("stopped", 200)
    resumed = second.raw["resumed_from"]
    assert (resumed["attempt"], resumed["step"], second.raw["restart"]) == (1, 200, False)
    assert "assumed" in second.raw["reason"]
    superseded = {key[:2] for key, each in checkpoints(live, project).items() if each["superseded"]}
    assert superseded == {(1, 300)}
    curves = {each.attempt: each.steps for each in live.read_series(recorded, "loss")}
    assert curves == {1: (100, 200, 300), 2: (201, 251, 301)}


def test_two_kinds_at_one_step_and_the_same_save_told_twice_are_no_going_back(live: Client, project: str) -> None:
    run = begin(project)
    run.saved("/ckpt/light-100", step=100, kind="light")
    run.saved("/ckpt/100", step=100)
    run.saved("/ckpt/100", step=100, scores={"piqa": 0.5})  # a trainer that saves once more at its end
    run.log(90, eval_accuracy=0.3)  # an evaluation that trails
    assert run.flush(LATEST)
    found = checkpoints(live, project)
    assert sorted(found) == [(1, 100, "archive"), (1, 100, "light")]
    assert [each["value"] for each in found[1, 100, "archive"]["scores"]] == [0.5]


def test_another_save_at_the_last_step_is_a_new_attempt(live: Client, project: str) -> None:
    run = begin(project)
    run.saved("/ckpt/100", step=100)
    run.saved("/ckpt/200", step=200)
    run.saved("/ckpt/200-again", step=200)
    assert run.flush(LATEST)
    assert sorted(checkpoints(live, project)) == [(1, 100, "archive"), (1, 200, "archive"), (2, 200, "archive")]


def test_a_save_that_was_only_begun_stays_pending(live: Client, project: str) -> None:
    run = begin(project)
    run.saving(10)
    assert run.flush(LATEST)
    (one,) = checkpoints(live, project).values()
    assert (one["state"], one["checkpoint"]["step"]) == ("pending", 10)


def test_a_large_cursor_travels_by_its_digest(live: Client, project: str, said: list[str]) -> None:
    run = begin(project)
    cursor = {"positions": list(range(30_000))}
    assert not run.saved(step=1, cursor=cursor, cursor_path="/ckpt/1/loader.json")  # not on disk yet when it returns
    run.saved(step=2, cursor={"rng": {1, 2}, "file": object()})
    run.saved(step=3, cursor=123_456)
    assert run.flush(LATEST)
    found = {key[1]: each for key, each in checkpoints(live, project).items()}
    assert found[1]["data_cursor"]["digest"].startswith("sha256:")
    assert found[1]["data_cursor"]["kept_at"] == "/ckpt/1/loader.json"
    assert found[1]["pieces"]["data_position"] == "unknown"  # a digest brings nobody back
    assert found[2]["data_cursor"]["type"] == "builtins.dict"
    assert "is no JSON" in found[2]["notes"]
    assert found[3]["piece_evidence"]["data_position"]["position_evidence"] == "counter"


def test_a_run_on_both_trackers_is_linked_with_no_argument_from_any_rank(
    live: Client, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    settings = SimpleNamespace(base_url="https://user:secret@wandb.example")
    wandb = SimpleNamespace(run=SimpleNamespace(id="w1", entity="team", project="llm", settings=settings))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    last_rank = cairn.start(project, "r", rank=7)
    assert not isinstance(last_rank, Recorder)
    assert last_rank.saved("/ckpt/1", step=1) is False
    assert engine.engine().flush(LATEST)
    engine.shut_down(LATEST)
    info = SimpleNamespace(run_id="m1", experiment_id="4")
    mlflow = SimpleNamespace(
        active_run=lambda: SimpleNamespace(info=info), get_tracking_uri=lambda: "http://mlflow.example"
    )
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(run=None))
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    run = begin(project, owner="ana", config={"lr": 1})
    run.saved(step=1)
    assert run.flush(LATEST)
    recorded = live.get_run(live.find_run(project, "r"))
    trackers = {each["kind"]: each for each in recorded.raw["trackers"]}
    assert trackers["wandb"]["run_id"] == "w1"
    assert "wandb.example" in trackers["wandb"]["uri"]
    assert "secret" not in str(trackers)
    assert (trackers["mlflow"]["run_id"], trackers["mlflow"]["uri"]) == ("m1", "http://mlflow.example")
    assert (recorded.owner, recorded.raw["config"]) == ("ana", {"lr": 1})
    assert list(checkpoints(live, project)) == [(1, 1, "archive")]


def test_a_tracker_opened_late_is_linked_too(live: Client, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    run = begin(project)
    run.log(1, loss=1.0)
    wandb = SimpleNamespace(run=SimpleNamespace(id="late", entity="t", project="p", settings=None))
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    for step in range(2, 120):
        run.log(step, loss=1.0)
    assert run.flush(LATEST)
    assert [each["run_id"] for each in live.find_run(project, "r").raw["trackers"]] == ["late"]


def test_heartbeats_say_the_step(live: Client, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "HEARTBEAT_SECONDS", 0.05)
    run = begin(project)
    run.log(41, loss=1.0)
    assert run.flush(LATEST)
    recorded = live.find_run(project, "r")
    until(lambda: live.list_attempts(recorded)[0].raw["heartbeat_at"])
    (attempt,) = live.list_attempts(recorded)
    assert attempt.raw["step"] == 41


def test_the_attempt_of_a_supervisor_is_joined_by_its_key(
    live: Client, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = live.create_run(project, "r")
    live.start_attempt(made, key="exec-1", command="train.sh")
    monkeypatch.setenv("CAIRN_RUN", f"{project}/r")
    monkeypatch.setenv("CAIRN_ATTEMPT_KEY", "exec-1")
    run = cairn.start(capture=OFF)
    run.saved(step=5)
    assert run.flush(LATEST)
    assert [each.number for each in live.list_attempts(made)] == [1]
    assert list(checkpoints(live, project)) == [(1, 5, "archive")]


def test_points_are_dense_at_the_start_and_before_the_end_and_thin_between(live: Client, project: str) -> None:
    from cairn.spool.curves import DENSE_POINTS, TAIL_POINTS

    run = begin(project)
    for step in range(1, 6_001):
        run.log(step, loss=math.nan if step == 3_333 else 1.0)
    run.finish()
    assert engine.engine().flush(LATEST)
    (curve,) = live.read_series(live.find_run(project, "r"), "loss")
    kept = set(curve.steps)
    assert set(range(1, DENSE_POINTS + 1)) <= kept
    assert set(range(6_001 - TAIL_POINTS, 6_001)) <= kept
    assert 3_333 in kept
    between = [step for step in kept if DENSE_POINTS < step <= 6_000 - TAIL_POINTS]
    assert 340 <= len(between) <= 360


def test_a_process_that_was_killed_leaves_its_last_points_dense(
    live: Client, project: str, spool: Path, service: tuple[str, Path]
) -> None:
    """What a resume did to the loss is read from the steps right before the break."""
    from cairn.spool.curves import DENSE_POINTS, TAIL_POINTS
    from cairn.spool.flush import flush

    last = DENSE_POINTS + 2_000
    code = f"""
run = cairn.start({project!r}, 'r', capture=False)
for step in range(1, {last} + 1):
    run.log(step, loss=1.0 / step)
while not run.saved(step={last}):
    time.sleep(0.01)
os._exit(9)
"""
    assert run_job(code, environment(*service, spool)).returncode == 9
    flush(live)
    (curve,) = live.read_series(live.find_run(project, "r"), "loss")
    kept = set(curve.steps)
    assert set(range(last + 1 - TAIL_POINTS, last + 1)) <= kept
    assert len(kept) < last - 1_000


def test_many_saves_are_sent_in_few_calls(live: Client, project: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    real, all_are_told = Client.register_batch, threading.Event()

    def noted(self: Client, items: Any, **more: Any) -> Any:
        all_are_told.wait(LATEST)
        sizes.append(len(items))
        return real(self, items, **more)

    monkeypatch.setattr(Client, "register_batch", noted)
    run = begin(project)
    for step in range(1, 61):
        run.saved(step=step)
    all_are_told.set()
    assert run.flush(LATEST)
    assert len(checkpoints(live, project)) == sum(sizes) == 60
    assert len(sizes) <= 12


@pytest.mark.parametrize("named", [{}, {"step": 5}, {"step": 5, "attempt": 1, "kind": "archive"}])
def test_a_receipt_says_what_was_really_restored(
    live: Client, project: str, spool: Path, named: dict[str, Any]
) -> None:
    first = begin(project)
    first.saved(step=5)
    first.finish()
    run = begin(project, resumed_from=5)
    states = {"weights": "restored", "optimizer": "fresh"}
    assert cairn.resume_receipt(pieces=states, restore_seconds=8, **named)
    run.log(6, loss=1.0)
    assert run.flush(LATEST)
    (receipt,) = live._fetch(f"/runs/{live.find_run(project, 'r').id}/resume-receipts")["items"]
    assert receipt["loaded"]["step"] == 5
    assert {name: receipt["pieces"][name] for name in states} == states
    assert not list(spool.glob("refused/*"))


def test_everything_that_was_acknowledged_leaves_no_folder_behind(live: Client, project: str, spool: Path) -> None:
    run = begin(project)
    run.saved(step=1)
    run.finish()
    assert engine.shut_down(LATEST)
    assert [each for each in spool.iterdir() if each.name != "refused"] == []


def test_a_layout_that_a_job_takes_on_after_its_start_is_that_of_its_checkpoints(
    live: Client, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(project)
    assert run.flush(LATEST)
    torch = SimpleNamespace(is_initialized=lambda: True, get_world_size=lambda: 64)
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    run.saved(step=1)
    run.saved(step=2, layout={"world_size": 64, "tp": 8})
    assert run.flush(LATEST)
    layouts = [checkpoints(live, project)[1, step, "archive"]["layout"] for step in (1, 2)]
    assert [(each["world_size"], each["tp"]) for each in layouts] == [(64, None), (64, 8)]


def test_scores_go_to_the_checkpoint_that_the_attempt_went_on_from_and_to_none_beside_its_path(
    live: Client, project: str
) -> None:
    first = begin(project)
    first.saved(step=100)
    first.saved(step=200)
    second = begin(project, resumed_from=100)
    second.saved(step=150)
    third = begin(project, resumed_from=150)
    third.scored(100, {"gsm8k": 0.25})
    third.scored(150, {"gsm8k": 0.5})
    third.scored(200, {"gsm8k": 0.75})  # attempt 2 went on from before it
    assert not third.flush(LATEST)
    scored = {key[:2]: [each["value"] for each in raw["scores"]] for key, raw in checkpoints(live, project).items()}
    assert scored == {(1, 100): [0.25], (1, 200): [], (2, 150): [0.5]}
    (refused,) = list_refused()
    assert (refused.kind, refused.run, refused.step) == ("scores", f"{project}/r", 200)


def test_a_refused_record_is_set_aside_with_its_reason_and_the_rest_goes_on(
    live: Client, project: str, spool: Path, said: list[str]
) -> None:
    run = begin(project)
    for step in range(1, 6):
        run.saved(step=step, scores=[{"benchmark": "b", "value": 1.0, "n_samples": -1 if step == 3 else 10}])
    assert not run.flush(LATEST)  # not everything reached the registry
    standing = run._engine.standing()
    assert (standing.refused, standing.waiting) == (1, 0)
    found = {key[1]: len(raw["scores"]) for key, raw in checkpoints(live, project).items()}
    assert found == {1: 1, 2: 1, 3: 0, 4: 1, 5: 1}  # only the score was refused, not the save that it came with
    (path,) = (spool / "refused").glob("*.json")
    kept = json.loads(path.read_text())
    assert kept["record"]["step"] == 3
    assert kept["problem"]["errors"]
    engine.shut_down(LATEST)
    assert len([each for each in said if "refused part of a record (scores.0; saved, step 3)" in each]) == 1


def test_a_description_that_is_refused_does_not_cost_the_checkpoints(live: Client, project: str, spool: Path) -> None:
    run = begin(project, config={"a": {str(number): number for number in range(19_999)}, "b": {"c": 1, "d": 2}})
    run.saved(step=1)
    assert run.flush(LATEST)
    assert list(checkpoints(live, project)) == [(1, 1, "archive")]


def test_the_backlog_of_another_service_is_left_alone(spool: Path) -> None:
    folder = spool / "20261129-000000-host-1-00000000"
    folder.mkdir(parents=True)
    Backlog(folder).belongs_to("https://one.example")
    assert Backlog.is_for(folder, "https://one.example")
    assert not Backlog.is_for(folder, "https://two.example")
