"""Several runs below one root: each has its own attempts and curves, and none takes another over."""

import json
from pathlib import Path

from cairn import Client
from cairn.watch.state import State

from tests.client.conftest import Cli
from tests.client.scan.trees import LONG_AGO, trainer, written
from tests.client.watch.looks import Look, ckpt, identities, kinds, recorded, superseded


def steps_of(client: Client, project: str, run: str) -> dict[int | None, tuple[int, ...]]:
    return {each.attempt: each.steps for each in client.read_series(client.find_run(project, run), "loss")}


def with_history(folder: Path, step: int, at: float) -> Path:
    trainer(folder, step)
    history = [{"step": each, "loss": 3 - each / 100} for each in range(1, step + 1)]
    state = {"global_step": step, "log_history": history, "is_world_process_zero": True, "max_steps": 100}
    (folder / "trainer_state.json").write_text(json.dumps(state))
    written(folder, at)
    return folder


def test_another_run_below_the_root_leaves_the_main_one_alone(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    with_history(ckpt(tmp_path, "checkpoint-20"), 20, LONG_AGO)
    look()
    with_history(ckpt(tmp_path, "sft/checkpoint-4"), 4, LONG_AGO + 600)
    assert kinds(look()) == ["recorded", "curves"]
    assert [each[:3] for each in identities(live, project)] == [("r", 1, 20), ("r/sft", 1, 4)]
    assert not any(superseded(live, project).values())
    with_history(ckpt(tmp_path, "checkpoint-30"), 30, LONG_AGO + 1200)
    look()
    assert steps_of(live, project, "r") == {1: tuple(range(1, 31))}
    assert steps_of(live, project, "r/sft") == {1: (1, 2, 3, 4)}


def test_runs_side_by_side_have_their_own_curves(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    with_history(ckpt(tmp_path, "a/checkpoint-20"), 20, LONG_AGO)
    with_history(ckpt(tmp_path, "b/checkpoint-10"), 10, LONG_AGO + 600)
    look()
    assert [each[:3] for each in identities(live, project)] == [("r/a", 1, 20), ("r/b", 1, 10)]
    assert steps_of(live, project, "r/a") == {1: tuple(range(1, 21))}
    assert steps_of(live, project, "r/b") == {1: tuple(range(1, 11))}
    assert live.read_series(live.find_run(project, "r/a"), "loss")[0].values[-1] == 3 - 20 / 100


def test_evaluations_in_a_trainers_history_stay_in_their_run(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    trainer(ckpt(tmp_path, "checkpoint-2"), 2, at=LONG_AGO)
    state = trainer(ckpt(tmp_path, "sft/checkpoint-4"), 4) / "trainer_state.json"
    history = [{"step": step, "eval_loss": 2 - step / 100, "eval_runtime": 1.0} for step in (2, 4)]
    said = {"global_step": 4, "log_history": history, "is_world_process_zero": True, "max_steps": 100}
    state.write_text(json.dumps(said))
    written(ckpt(tmp_path, "sft"), LONG_AGO + 60)
    look()
    scores = {(each.run.name if each.run else ""): live.list_scores(each) for each in recorded(live, project)}
    assert [[score.value for score in scores[run]] for run in ("r", "r/sft")] == [[], [1.96]]


def test_a_run_keeps_its_name_when_another_appears_beside_it(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    trainer(ckpt(tmp_path, "a/checkpoint-10"), 10, at=LONG_AGO)
    look()
    trainer(ckpt(tmp_path, "b/checkpoint-10"), 10, at=LONG_AGO + 60)
    trainer(ckpt(tmp_path, "a/checkpoint-20"), 20, at=LONG_AGO + 120)
    look()
    assert [each[:3] for each in identities(live, project)] == [("r", 1, 10), ("r", 1, 20), ("r/b", 1, 10)]


def test_a_touched_state_of_an_older_step_opens_no_attempt(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    for step in (10, 20):
        with_history(ckpt(tmp_path, f"checkpoint-{step}"), step, LONG_AGO + step)
    look()
    written(ckpt(tmp_path, "checkpoint-10"), LONG_AGO + 900)
    assert look() == []
    assert len(live.list_attempts(live.find_run(project, "r"))) == 1


def test_what_trainer_writes_at_the_end_beside_the_checkpoints_is_read(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    with_history(ckpt(tmp_path, "checkpoint-10"), 10, LONG_AGO)
    look()
    state = with_history(tmp_path / "end", 13, LONG_AGO + 60) / "trainer_state.json"
    state.rename(ckpt(tmp_path, "trainer_state.json"))
    look()
    assert steps_of(live, project, "r") == {1: tuple(range(1, 14))}


def test_a_tree_recorded_as_another_run_is_said_to_be(live: Client, project: str, cli: Cli, tmp_path: Path) -> None:
    for step in (10, 20):
        trainer(ckpt(tmp_path, f"checkpoint-{step}"), step, at=LONG_AGO + step)
    options = ("--once", "--tier", "shared")
    assert cli("watch", str(tmp_path / "ckpt"), "--run", f"{project}/tiny", *options)[0] == 0
    for _ in range(2):
        code, printed, aside = cli("watch", str(tmp_path / "ckpt"), "--run", f"{project}/other", *options)
        assert code == 0
        assert f"2 belong to {project}/tiny" in printed + aside
    assert {each[0] for each in identities(live, project)} == {"tiny"}


def test_what_an_older_watcher_knew_is_found_out_again(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    trainer(ckpt(tmp_path, "checkpoint-10"), 10, at=LONG_AGO)
    look()
    state = State(tmp_path / "state" / "watch.db")
    state.change("DROP TABLE place")
    state.change("CREATE TABLE place (path TEXT PRIMARY KEY, candidate TEXT, print TEXT)")
    state.change("PRAGMA user_version = 1")
    state.keep()
    state.close()
    assert "recorded" not in kinds(look())
    assert look() == []
    assert [each[:3] for each in identities(live, project)] == [("r", 1, 10)]
