"""The plan for a tree: runs, attempts, steps, what is whole and what is not."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import Unreadable
from cairn.scan import Plan, scan

from tests.client.scan.trees import FIXTURES, LONG_AGO, fixture, safetensors, trainer, written


@contextmanager
def planned(root: Path, **options: Any) -> Iterator[Plan]:
    with scan(str(root), project="p", settle_seconds=options.pop("settle_seconds", 0), **options) as plan:
        yield plan


def table(root: Path, **options: Any) -> list[tuple[str, int, int, str]]:
    """(run, attempt, step, status) of every checkpoint."""
    with planned(root, **options) as plan:
        return [(each["run"], each["attempt"], each["step"], each["status"]) for each in plan.items()]


def problems(root: Path, **options: Any) -> dict[str, str]:
    with planned(root, **options) as plan:
        return dict(plan.problems())


def test_runs_are_the_nearest_folders_that_hold_checkpoints(tmp_path: Path) -> None:
    trainer(tmp_path / "team-a/exp1/checkpoint-100", 100)
    trainer(tmp_path / "team-a/exp1/checkpoint-200", 200)
    trainer(tmp_path / "team-b/exp1/checkpoints/checkpoint-100", 100)
    assert table(tmp_path) == [
        ("team-a/exp1", 1, 100, "new"),
        ("team-a/exp1", 1, 200, "new"),
        ("team-b/exp1", 1, 100, "new"),
    ]


def test_checkpoints_in_the_root_itself_are_a_run_of_its_name(tmp_path: Path) -> None:
    trainer(tmp_path / "7b-a/checkpoints/checkpoint-5", 5)
    assert table(tmp_path / "7b-a/checkpoints") == [("7b-a", 1, 5, "new")]
    assert table(tmp_path / "7b-a/checkpoints", run="mine") == [("mine", 1, 5, "new")]
    assert table(tmp_path / "7b-a/checkpoints/checkpoint-5") == [("checkpoint-5", 1, 5, "new")]


def test_the_run_of_the_root_has_the_name_that_is_given_whatever_lies_below(tmp_path: Path) -> None:
    trainer(tmp_path / "t/checkpoint-20", 20)
    trainer(tmp_path / "t/sft/checkpoint-4", 4)
    assert [run for run, *_ in table(tmp_path / "t", run="llm")] == ["llm", "llm/sft"]


def test_a_name_for_several_runs_is_what_they_begin_with(tmp_path: Path) -> None:
    trainer(tmp_path / "a/checkpoint-1", 1)
    trainer(tmp_path / "b/checkpoint-1", 1)
    assert [run for run, *_ in table(tmp_path, run="llm")] == ["llm/a", "llm/b"]


def test_steps_are_whole_numbers_and_not_text(tmp_path: Path) -> None:
    for step in (9000, 9900, 10000):
        trainer(tmp_path / f"r/checkpoint-{step}", step)
    safetensors(tmp_path / "m/iter_0000002/model.safetensors")
    assert [(run, step) for run, _, step, _ in table(tmp_path)] == [("m", 2), ("r", 9000), ("r", 9900), ("r", 10000)]


def test_a_reused_folder_becomes_two_attempts(tmp_path: Path) -> None:
    for place, step in enumerate((300, 400, 500, 100, 200)):
        trainer(tmp_path / f"r/checkpoint-{step}", step, at=LONG_AGO + place * 600)
    assert [(attempt, step) for _, attempt, step, _ in table(tmp_path)] == [
        *((1, 300), (1, 400), (1, 500)),
        *((2, 100), (2, 200)),
    ]
    with planned(tmp_path) as plan:
        assert dict(plan.remarks())["r"] == "attempts by the times of files: step 100 was written after step 500"
    assert {attempt for _, attempt, _, _ in table(tmp_path, by_time=False)} == {1}


def test_folders_of_attempts_are_attempts_of_one_run(tmp_path: Path) -> None:
    for attempt in (1, 2):
        trainer(tmp_path / f"r/attempt_{attempt}/checkpoint-10", 10)
    assert table(tmp_path) == [("r", 1, 10, "new"), ("r", 2, 10, "new")]


def test_the_step_in_the_content_counts_and_the_names_contradiction_is_told(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-800", 799)
    with planned(tmp_path) as plan:
        (item,) = plan.items()
    assert item["step"] == 799
    assert any("800" in note for note in item["notes"])


def test_a_second_name_of_a_checkpoint_is_left_out(tmp_path: Path) -> None:
    fixture("lightning_ckpt/epoch-end/epoch=0-step=4.ckpt", tmp_path / "r/epoch=0-step=4.ckpt")
    fixture("lightning_ckpt/epoch-end/epoch=0-step=4.ckpt", tmp_path / "r/last.ckpt")
    with planned(tmp_path) as plan:
        found = {os.path.basename(each["uri"]): (each["status"], each["note"]) for each in plan.items()}
    assert found["epoch=0-step=4.ckpt"][0] == "new"
    assert found["last.ckpt"] == ("left out", "another name of epoch=0-step=4.ckpt")


def test_last_alone_is_recorded_at_the_step_in_its_content(tmp_path: Path) -> None:
    fixture("lightning_ckpt/epoch-end/epoch=0-step=4.ckpt", tmp_path / "r/last.ckpt")
    assert table(tmp_path) == [("r", 1, 4, "new")]


def test_a_converted_copy_is_a_run_beside_and_comes_from_the_original(tmp_path: Path) -> None:
    safetensors(tmp_path / "r/step10/model.safetensors")
    safetensors(tmp_path / "r/step10-unsharded/model.safetensors")
    assert table(tmp_path) == [("r", 1, 10, "new"), ("r/unsharded", 1, 10, "new")]


def test_converted_copies_alone_are_the_run(tmp_path: Path) -> None:
    safetensors(tmp_path / "r/step10-unsharded/model.safetensors")
    assert table(tmp_path) == [("r", 1, 10, "new")]


def test_models_side_by_side_below_a_step_are_runs_of_their_own(tmp_path: Path) -> None:
    for part in ("actor", "critic"):
        safetensors(tmp_path / f"r/global_step_100/{part}/model.safetensors")
    assert table(tmp_path) == [("r/actor", 1, 100, "new"), ("r/critic", 1, 100, "new")]


def test_what_has_no_step_is_named_with_what_to_do(tmp_path: Path) -> None:
    safetensors(tmp_path / "r/final/model.safetensors")
    assert table(tmp_path) == []
    assert "cairn record --step N" in problems(tmp_path)["r/final"]


def test_what_no_file_ends_waits_until_it_is_quiet(tmp_path: Path) -> None:
    safetensors(tmp_path / "r/step-7/model.safetensors")
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "pending")]
    written(tmp_path / "r", time.time() - 400)
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "new")]


def test_a_file_that_ends_a_save_counts_only_while_nothing_is_newer(tmp_path: Path) -> None:
    folder = trainer(tmp_path / "r/checkpoint-7", 7, at=time.time() - 10)
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "new")]
    os.utime(folder / "model.safetensors")  # as where step 7 is saved over
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "pending")]


@pytest.mark.parametrize("name", ["tmp-checkpoint-20", "checkpoint-20.tmp"])
def test_a_save_under_its_temporary_name_has_the_step_of_its_name(name: str, tmp_path: Path) -> None:
    safetensors(tmp_path / "r" / name / "model.safetensors")
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 20, "pending")]
    assert problems(tmp_path, settle_seconds=300) == {}


def test_an_unfinished_save_is_pending_with_the_reason(tmp_path: Path) -> None:
    folder = fixture("safetensors_sharded", tmp_path / "r/step-10")
    (folder / "model-00002-of-00002.safetensors").unlink()
    written(folder, LONG_AGO)
    with planned(tmp_path) as plan:
        (item,) = plan.items()
        ((_, body),) = next(plan.batches(10))
    assert item["status"] == "pending"
    assert "not finished; missing: model-00002-of-00002.safetensors" in item["note"]
    assert body["state"] == "pending"
    assert "replicas" not in body


def test_a_recent_save_that_cannot_show_that_it_is_whole_is_left_pending(tmp_path: Path) -> None:
    fixture("torch_save/weights.pth", tmp_path / "r/step_7.pt")
    written(tmp_path, time.time())
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "pending")]
    written(tmp_path, LONG_AGO)
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "new")]


def test_a_completion_marker_makes_a_recent_save_whole(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-7", 7)
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "new")]
    (tmp_path / "r/checkpoint-7/trainer_state.json").unlink()
    fixture("hf_trainer/checkpoint-4/rng_state.pth", tmp_path / "r/checkpoint-7/rng_state.pth")
    fixture("hf_trainer/checkpoint-4/optimizer.pt", tmp_path / "r/checkpoint-7/optimizer.pt")
    assert table(tmp_path, settle_seconds=300) == [("r", 1, 7, "pending")]


def test_a_folder_just_begun_is_said_to_be_and_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "r/step-30").mkdir(parents=True)
    (tmp_path / "r/step-30/__0_0.distcp").write_bytes(b"x" * 40)
    found = table(tmp_path, settle_seconds=300)
    assert [(step, status) for _, _, step, status in found] in ([(30, "begun")], [(30, "pending")])
    with planned(tmp_path, settle_seconds=300) as plan:
        assert [body.get("state") for batch in plan.batches(10) for _, body in batch] in ([], ["pending"])


def test_the_name_of_an_unfinished_save_is_never_committed(tmp_path: Path) -> None:
    trainer(tmp_path / "r/tmp-checkpoint-500", 500, at=LONG_AGO)
    assert [status for *_, status in table(tmp_path)] == ["pending"]
    trainer(tmp_path / "r/checkpoint-500", 500, at=LONG_AGO)
    assert sorted(status for *_, status in table(tmp_path)) == ["left out", "new"]


def test_a_trackers_step_decides_where_the_files_cannot(tmp_path: Path) -> None:
    for step in (10, 20):
        fixture("torch_save/weights.pth", tmp_path / f"r/step_{step}.pt")
    (tmp_path / "r/latest").write_text("global_step10\n")
    assert [status for *_, status in table(tmp_path)] == ["new", "pending"]


def test_what_a_registration_says_comes_from_the_files(tmp_path: Path) -> None:
    trainer(tmp_path / "r/checkpoint-41", 41, at=LONG_AGO, loss=1.75)
    with planned(tmp_path, tier="local") as plan:
        ((_, body),) = next(plan.batches(10))
    assert (body["run"], body["attempt"], body["step"], body["kind"]) == ("r", 1, 41, "archive")
    assert (body["loss"], body["lr"], body["epoch"], body["format"]) == (1.75, 1e-4, 0.5, "hf-trainer")
    assert body["saved_at"] == "2023-11-14T22:13:20Z"
    assert body["tags"] == {"saved_at_from": "file time"}
    assert body["pieces"]["weights"]["state"] == "present"
    assert body["pieces"]["optimizer"]["state"] == "absent"
    (replica,) = body["replicas"]
    assert replica["uri"] == str(tmp_path / "r/checkpoint-41")
    assert replica["tier"] == "local"
    assert replica["host"]
    assert replica["file_count"] == 2


def test_files_of_ranks_are_recorded_as_one(tmp_path: Path) -> None:
    for rank in range(4):
        fixture("torch_save/step_250.pt", tmp_path / f"r/ep0-ba250-rank{rank}.pt")
    with planned(tmp_path) as plan:
        ((_, body),) = next(plan.batches(10))
    assert (body["step"], body["layout"]["world_size"]) == (250, 4)
    assert body["replicas"][0]["uri"] == str(tmp_path / "r/ep0-ba250-rank*.pt")
    assert body["replicas"][0]["file_count"] == 4


def test_every_format_that_the_readers_know_is_found_in_one_tree() -> None:
    """Real checkpoints of every library, one below the other."""
    if not FIXTURES.exists():
        pytest.skip("the fixtures are not there")
    with planned(FIXTURES) as plan:
        formats = {each["format"] for each in plan.items()}
        said = dict(plan.problems())
    assert formats >= {"hf-trainer", "lightning", "torch-save", "torch-dcp", "megatron-legacy", "megatron-torch-dist"}
    assert formats >= {"deepspeed-zero", "deepspeed-universal", "megatron-zarr"}
    assert all("no step" in reason for reason in said.values()), said


def test_a_root_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="is no folder"), planned(tmp_path / "nowhere"):
        pass


def test_many_candidates_are_looked_at_by_processes_with_the_same_result(tmp_path: Path) -> None:
    for step in range(1, 101):
        trainer(tmp_path / f"r/checkpoint-{step}", step)
    assert table(tmp_path) == [("r", 1, step, "new") for step in range(1, 101)]
