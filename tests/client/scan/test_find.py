"""Which folders and files a scan looks at, by names and listings alone."""

import tracemalloc

import pytest
from cairn.formats.checkpoints import File
from cairn.scan import find
from cairn.scan.find import Candidate, Tracker, find_candidates
from cairn.scan.names import place_of


def candidates(*paths: str) -> list[Candidate]:
    files = [File(path, 10, 1.0) for path in paths]
    return [met for met in find_candidates(files) if isinstance(met, Candidate)]


def places(*paths: str) -> list[tuple[str, str]]:
    return [(each.path, each.folder) for each in candidates(*paths)]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["r/checkpoint-500/model.safetensors", "r/checkpoint-500/trainer_state.json"], "r/checkpoint-500"),
        (["r/epoch=3-step=900.ckpt"], "r/epoch=3-step=900.ckpt"),
        (["r/last.ckpt"], "r/last.ckpt"),
        (["r/iter_0000500/mp_rank_00/model_optim_rng.pt"], "r/iter_0000500"),
        (["r/release/metadata.json"], "r/release"),
        (["r/checkpoint/step-1000/.metadata", "r/checkpoint/step-1000/__0_0.distcp"], "r/checkpoint/step-1000"),
        (["r/global_step600/zero_pp_rank_0_mp_rank_00_optim_states.pt"], "r/global_step600"),
        (["r/gpt--val_loss=2.10-step=900-consumed_samples=5760.0.ckpt"],) * 2,
        (["r/gpt--val_loss=2.10-step=900-last/weights/.metadata"], "r/gpt--val_loss=2.10-step=900-last"),
        (["r/step1000-unsharded/model.pt", "r/step1000-unsharded/optim.pt"], "r/step1000-unsharded"),
        (["r/ep0-ba100/ep0-ba100-rank0.pt"], "r/ep0-ba100"),
        (["r/ep0-ba100.pt"], "r/ep0-ba100.pt"),
        (["r/training_step_40000_train_loss_3.2994_dev_loss_3.18824/model.pt"],) * 2,
        (["r/final/model.safetensors"], "r/final"),
        (["r/lora/adapter_config.json", "r/lora/adapter_model.safetensors"], "r/lora"),
        (["r/tmp-checkpoint-500/model.safetensors"], "r/tmp-checkpoint-500"),
        (["r/checkpoint-500.tmp/model.safetensors"], "r/checkpoint-500.tmp"),
    ],
)
def test_every_frameworks_manner_is_found(files: list[str], expected: str | list[str]) -> None:
    wanted = expected if isinstance(expected, str) else expected[0].removesuffix("/model.pt")
    assert [each.path for each in candidates(*files)] == [wanted]


def test_what_is_no_checkpoint_is_not_looked_at() -> None:
    assert places("r/README.md", "r/log.txt", "r/data/train.bin", "r/wandb/run-1/x.json", "r/tokens.pt") == []
    assert places("r/checkpoint-10000 (deleted)/x", "r/metadata.json", "r/optimizer.pt") == []


def test_a_checkpoint_takes_everything_below_it() -> None:
    (found,) = candidates(
        "r/checkpoint-200/global_step199/mp_rank_00_model_states.pt",
        "r/checkpoint-200/latest",
        "r/checkpoint-200/trainer_state.json",
    )
    assert found.path == "r/checkpoint-200"
    assert [each.path for each in found.files] == [
        "global_step199/mp_rank_00_model_states.pt",
        "latest",
        "trainer_state.json",
    ]


@pytest.mark.parametrize("order", [sorted, lambda paths: sorted(paths, key=lambda path: (path.count("/"), path))])
def test_deepspeed_below_a_trainers_folder_is_a_part_of_it(order: object) -> None:
    paths = ["r/global_step600/mp_rank_00_model_states.pt", "r/latest", "r/model.safetensors", "r/trainer_state.json"]
    assert callable(order)
    (found,) = candidates(*order(paths))
    assert (found.path, found.folder) == ("r", "r")
    assert "global_step600/mp_rank_00_model_states.pt" in {each.path for each in found.files}


def test_deepspeed_elsewhere_is_a_run_of_checkpoints() -> None:
    paths = [f"r/global_step{step}/mp_rank_00_model_states.pt" for step in (100, 200, 300)]
    assert places(*paths, "r/latest") == [(f"r/global_step{step}", "r") for step in (100, 200, 300)]
    assert places(paths[0], "r/latest") == [("r/global_step100", "r")]


def test_a_runs_last_state_beside_its_checkpoints_is_the_runs_own() -> None:
    found = places("r/model.safetensors", "r/trainer_state.json", "r/checkpoint-5/model.safetensors")
    assert found == [("r/checkpoint-5", "r"), ("r", "r")]


def test_the_files_of_a_runs_own_state_are_not_those_of_its_checkpoints() -> None:
    own = candidates("r/checkpoint-5/model.safetensors", "r/model.safetensors")[-1]
    assert [each.path for each in own.files] == ["model.safetensors"]


def test_files_of_ranks_are_one_checkpoint_together() -> None:
    (found,) = candidates(*(f"r/ep0-ba100-rank{rank}.pt" for rank in range(8)))
    assert (found.path, len(found.files), found.ranks) == ("r/ep0-ba100-rank*.pt", 8, True)


def test_a_rank_folder_belongs_to_the_folder_above_it() -> None:
    assert places("r/mp_rank_00/model_optim_rng.pt", "r/mp_rank_01/model_optim_rng.pt") == [("r", "r")]


def test_trackers_are_told_with_the_folder_they_speak_for() -> None:
    files = [File("r/latest_checkpointed_iteration.txt", 3), File("r/iter_0000002/metadata.json", 9)]
    assert [met.folder for met in find_candidates(files) if isinstance(met, Tracker)] == ["r"]


def test_a_folder_of_millions_of_other_files_is_not_kept_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MAX_HELD", 100)
    folder = find._Folder("", None)
    for number in range(10_000):
        folder.hold(File(f"{number}.txt", 1))
    assert (len(folder.held), folder.left_out) == (100, 9_900)


def test_a_tree_of_other_files_passes_through_without_being_kept() -> None:
    """Some 20 MB, were they kept."""
    files = (File(f"data/{number // 1000}/{number:060d}.bin", 1, 1.0) for number in range(60_000))
    tracemalloc.start()
    try:
        assert list(find_candidates(files)) == []
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * 1024 * 1024, f"{peak:,} bytes"


def test_a_checkpoint_of_too_many_files_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MAX_FILES", 3)
    (found,) = candidates(*(f"r/step-5/{number}" for number in range(10)))
    assert (len(found.files), found.left_out) == (3, 7)


@pytest.mark.parametrize(
    ("folder", "run", "attempt"),
    [
        ("exp1", "exp1", None),
        ("exp1/checkpoints", "exp1", None),
        ("team/exp1/attempt_2/ckpt", "team/exp1", 2),
        ("exp1/restart-3", "exp1", 3),
        ("lightning_logs/version_0/checkpoints", "lightning_logs/version_0", None),
        ("checkpoints", "root", None),
        ("", "root", None),
        ("attempt_1", "root", 1),
        ("attempts/attempt_x", "attempts/attempt_x", None),
    ],
)
def test_runs_are_named_by_their_path(folder: str, run: str, attempt: int | None) -> None:
    place = place_of(folder, "root")
    assert (place.run, place.attempt) == (run, attempt)


def test_a_stores_order_and_a_walks_order_find_the_same() -> None:
    paths = [
        "a/checkpoints/step-10/.metadata",
        "a/checkpoints/step-10/__0_0.distcp",
        "a/checkpoints/step-20/.metadata",
        "a/config.yaml",
        "b.txt",
        "b/model.safetensors",
        "b/trainer_state.json",
        "b/checkpoint-5/model.safetensors",
        "b/checkpoint-5/trainer_state.json",
    ]
    walked = ["b.txt", "b/model.safetensors", "b/trainer_state.json", *paths[-2:], "a/config.yaml", *paths[:3]]
    assert sorted(places(*sorted(paths))) == sorted(places(*walked))
