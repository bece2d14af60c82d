"""A watcher beside saves that take their time, folders that are rotated away, and files that somebody touches."""

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from cairn import Client
from cairn.resume import choose
from cairn.scan.names import TRACKERS
from cairn.watch import Event
from cairn.watch.state import State

from tests.client.scan.trees import FIXTURES, LONG_AGO, fixture, trainer, written
from tests.client.watch.looks import Look, ckpt, identities, kinds, recorded, superseded

HOUR = 3600.0
# The files of each fixture in the order in which its library writes them, and the folder of the checkpoint below the
# root. Trainer 4.37 and later: `Trainer._save_checkpoint`. DeepSpeed: `save_checkpoint` on two ranks. Accelerate:
# `save_accelerator_state`. DCP: the shards of all ranks, then the metadata of the coordinator.
SAVES = {
    "hf_trainer/checkpoint-4": (
        "checkpoint-4",
        *("config.json", "generation_config.json", "model.safetensors", "training_args.bin", "optimizer.pt"),
        *("scheduler.pt", "rng_state.pth", "trainer_state.json"),
    ),
    "hf_trainer_two_ranks/checkpoint-4": (
        "checkpoint-4",
        *("config.json", "model.safetensors", "training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state_0.pth"),
        *("trainer_state.json", "rng_state_1.pth"),
    ),
    "deepspeed/zero1": (
        "",
        "global_step3/mp_rank_00_model_states.pt",
        "global_step3/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
        "global_step3/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
        "latest",
    ),
    "accelerate_state": (
        "step_10",
        *("model.safetensors", "optimizer.bin", "scheduler.bin", "random_states_0.pkl"),
    ),
    "dcp/fsdp2/step-20": (
        "step-20",
        *("__0_0.distcp", "__1_0.distcp", "__2_0.distcp", "__3_0.distcp", ".metadata"),
    ),
    "safetensors_sharded": (
        "step-10",
        *("config.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"),
        "model.safetensors.index.json",
    ),
}
SAVES |= {
    "hf_trainer_lora/checkpoint-4": (
        "checkpoint-4",
        *("adapter_model.safetensors", "adapter_config.json", "training_args.bin", "optimizer.pt", "scheduler.pt"),
        *("rng_state.pth", "trainer_state.json"),
    ),
    "megatron/torch_dist": (
        "",
        *(f"iter_0000020/{name}" for name in ("common.pt", "__0_0.distcp", "__1_0.distcp", "__2_0.distcp")),
        *(f"iter_0000020/{name}" for name in ("__3_0.distcp", ".metadata", "metadata.json")),
    ),
    "megatron/legacy/parallel": (
        "",
        *(f"iter_0000020/mp_rank_{rank}/distrib_optim.pt" for rank in ("00_000", "00_001", "01_000", "01_001")),
        *(f"iter_0000020/mp_rank_{rank}/model_optim_rng.pt" for rank in ("00_000", "00_001", "01_000", "01_001")),
        "latest_checkpointed_iteration.txt",
    ),
    "dcp/parts/checkpoint_3": (
        "checkpoint_3",
        *(f"pytorch_model_fsdp_0/{name}" for name in ("__0_0.distcp", "__1_0.distcp", ".metadata")),
        *(f"optimizer_0/{name}" for name in ("__0_0.distcp", "__1_0.distcp", ".metadata")),
    ),
    "lightning_ckpt/mid-epoch": ("", "epoch=0-step=3.ckpt"),
}
# What commits by a file that ends the save; the others by quiet alone.
MARKED = {
    *("hf_trainer/checkpoint-4", "hf_trainer_lora/checkpoint-4", "deepspeed/zero1", "dcp/fsdp2/step-20"),
    *("dcp/parts/checkpoint_3", "megatron/torch_dist", "megatron/legacy/parallel", "lightning_ckpt/mid-epoch"),
}


def arriving(name: str, root: Path) -> Iterator[str]:
    """Writes one file of a save after the other, half of each first; then whatever else belongs to it."""
    folder, *order = SAVES[name]
    source, target = FIXTURES / name, root / folder
    if not source.is_dir():
        pytest.skip(f"the fixture {name} is not there")
    rest = [path.relative_to(source).as_posix() for path in sorted(source.rglob("*")) if path.is_file()]
    rest = [path for path in rest if path in order or path not in TRACKERS]
    assert set(order) <= set(rest), rest
    for path in [*(each for each in rest if each not in order), *order]:
        data = (source / path).read_bytes()
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        for part in (data[: len(data) // 2], data):
            (target / path).write_bytes(part)
            yield path
        time.sleep(0.01)  # so that file times tell the order


@pytest.mark.parametrize("name", SAVES)
def test_a_save_is_one_attempt_and_committed_once_at_its_end(
    name: str, live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    events: list[Event] = []
    for _ in arriving(name, tmp_path / "ckpt"):
        assert "committed" not in [each[3] for each in identities(live, project)]
        events += look(quiet_seconds=HOUR)
    if name not in MARKED:
        assert {each[3] for each in identities(live, project)} == {"pending"}
        written(tmp_path / "ckpt", LONG_AGO)
        events += look(quiet_seconds=HOUR)
    assert [each[1::2] for each in identities(live, project)] == [(1, "committed")]
    assert kinds(events).count("recorded") == 1
    assert "attempt" not in kinds(events)
    (found,) = recorded(live, project)
    own = [path for path in (tmp_path / "ckpt").rglob("*") if path.is_file() and path.name not in TRACKERS]
    assert live.get_checkpoint(found).replicas[0]["bytes"] == sum(path.stat().st_size for path in own)


def test_a_step_saved_over_slowly_is_one_new_attempt(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    trainer(ckpt(tmp_path, "checkpoint-2"), 2, at=LONG_AGO)
    for _ in arriving("hf_trainer/checkpoint-4", tmp_path / "ckpt"):
        pass
    other = (FIXTURES / "hf_trainer/checkpoint-2/model.safetensors").read_bytes()
    look()
    for _ in arriving("hf_trainer/checkpoint-4", tmp_path / "ckpt"):
        model = ckpt(tmp_path, "checkpoint-4/model.safetensors")
        if model.stat().st_size == len(other):
            model.write_bytes(other)  # the same size and other content, as a save over it has
        look(quiet_seconds=HOUR)
    trainer(ckpt(tmp_path, "checkpoint-4"), 4, loss=1.25)
    look()
    assert [(each.attempt, each.step) for each in recorded(live, project)] == [(1, 2), (1, 4), (2, 4)]


def three_steps(tmp_path: Path) -> None:
    for place, step in enumerate((10, 20, 30)):
        folder = fixture("hf_trainer/checkpoint-4", ckpt(tmp_path, f"checkpoint-{step}"))
        state = folder / "trainer_state.json"
        state.write_text(state.read_text().replace('"global_step": 4', f'"global_step": {step}'))
        written(folder, LONG_AGO + place * 600)


def test_a_rotation_seen_half_way_supersedes_nothing(live: Client, project: str, look: Look, tmp_path: Path) -> None:
    three_steps(tmp_path)
    look()
    oldest = ckpt(tmp_path, "checkpoint-10")
    for path in [
        oldest / "optimizer.pt",
        *sorted(oldest.iterdir(), key=lambda path: path.name != "trainer_state.json"),
    ]:
        path.unlink(missing_ok=True)
        assert "attempt" not in kinds(look(quiet_seconds=HOUR))
        assert superseded(live, project) == {(1, 10): False, (1, 20): False, (1, 30): False}
        choice = choose(live, f"{project}/r")
        assert choice.path == str(ckpt(tmp_path, "checkpoint-30"))
    oldest.rmdir()
    assert {each[3] for each in identities(live, project)} == {"committed"}
    assert look() == []


@pytest.mark.parametrize("lost", ["__0_0.distcp", ".metadata"])
def test_a_shard_that_was_removed_is_no_new_save(
    lost: str, live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    for step in (20, 40):
        written(fixture("dcp/fsdp2/step-20", ckpt(tmp_path, f"step-{step}")), LONG_AGO + step)
    look()
    before = identities(live, project)
    ckpt(tmp_path, f"step-20/{lost}").unlink()
    assert look() == []
    assert look() == []
    assert identities(live, project) == before
    with closing(State(tmp_path / "state" / "watch.db")) as state:  # nothing is waited for
        assert {each.state for each in state.known().values()} == {"committed"}


@pytest.mark.parametrize("what", ["one", "all", "tokenizer", "restored"])
def test_what_is_touched_added_or_copied_back_is_no_new_save(
    what: str, live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    three_steps(tmp_path)
    look()
    before = identities(live, project)
    oldest = ckpt(tmp_path, "checkpoint-10")
    if what == "tokenizer":
        (oldest / "tokenizer.model").write_bytes(b"\n\x05")
    elif what == "restored":
        shutil.copytree(oldest, tmp_path / "kept", copy_function=shutil.copyfile)
        shutil.copytree(tmp_path / "kept", oldest, dirs_exist_ok=True, copy_function=shutil.copyfile)
    else:
        for path in [oldest / "optimizer.pt"] if what == "one" else oldest.iterdir():
            os.utime(path)
    assert look(quiet_seconds=HOUR) == []
    assert look() == []
    assert identities(live, project) == before


def test_a_file_that_was_cut_and_is_whole_again_is_committed(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    folder = fixture("hf_trainer/checkpoint-4", ckpt(tmp_path, "checkpoint-4"))
    written(folder, LONG_AGO)
    look()
    model = folder / "model.safetensors"
    data = model.read_bytes()
    model.write_bytes(data[:5000])
    look()
    assert [each[1::2] for each in identities(live, project)] == [(1, "committed"), (2, "pending")]
    model.write_bytes(data)
    look()
    assert [each[1::2] for each in identities(live, project)] == [(1, "committed"), (2, "committed")]


def test_a_folder_with_the_name_of_a_save_under_way_is_no_problem(
    live: Client, project: str, look: Look, tmp_path: Path
) -> None:
    trainer(ckpt(tmp_path, "checkpoint-2"), 2, at=LONG_AGO)
    look()
    under_way = ckpt(tmp_path, "tmp-checkpoint-4")
    for _ in arriving("hf_trainer/checkpoint-4", tmp_path / "elsewhere"):
        shutil.copytree(tmp_path / "elsewhere/checkpoint-4", under_way, dirs_exist_ok=True)
        assert set(kinds(look(quiet_seconds=HOUR))) <= {"pending", "evals"}  # of step 2, which its state names too
    assert [each[1:] for each in identities(live, project)] == [(1, 2, "committed"), (1, 4, "pending")]
    under_way.rename(ckpt(tmp_path, "checkpoint-4"))
    assert {"recorded", "curves"} <= set(kinds(look(quiet_seconds=HOUR))) <= {"recorded", "curves", "evals"}
    assert [each[1:] for each in identities(live, project)] == [(1, 2, "committed"), (1, 4, "committed")]
