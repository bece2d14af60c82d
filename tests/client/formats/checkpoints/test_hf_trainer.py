"""Folders of Hugging Face's Trainer."""

import io
import json
import zipfile
from pathlib import Path

import pytest
from cairn.formats.checkpoints import PositionEvidence, Resumability, Unrecognised
from cairn.formats.checkpoints.source import Listing
from cairn.formats.checkpoints.trainer_state import read_trainer_state

from tests.client.formats.checkpoints.sources import MemorySource, files_of, inspect_files, inspected, reasons, states

CHECKPOINT = "hf_trainer/checkpoint-4"
SHARED = Path(__file__).parents[5] / "shared" / "data"


def test_a_real_checkpoint_is_resumable_with_every_piece_and_its_evidence() -> None:
    found = inspected(CHECKPOINT)
    assert (found.format, found.step, found.step_source) == ("hf-trainer", 4, "trainer_state.json global_step")
    assert found.resumability is Resumability.EXACT
    assert found.pieces.optimizer.evidence == "optimizer.pt, scheduler.pt"
    assert found.pieces.random_state.evidence == "rng_state.pth"
    assert found.pieces.data_position.position is PositionEvidence.COUNTER
    assert found.layout.world_size == 1
    assert (found.parameter_count, found.complete, found.problems) == (1704, True, ())


def test_step_epoch_loss_evaluations_and_best_come_from_the_state() -> None:
    facts = inspected(CHECKPOINT).facts
    assert facts["epoch"] == 0.5
    assert facts["loss_step"] == facts["evaluated_step"] == 4
    assert facts["loss"] == pytest.approx(3.457, abs=0.01)
    assert facts["evaluations"].keys() == {"eval_loss"}
    assert facts["best"]["step"] in (2, 4)
    assert facts["training_args_bytes"] > 1000


def test_the_number_of_ranks_comes_from_the_random_states() -> None:
    found = inspected("hf_trainer_two_ranks/checkpoint-4")
    assert (found.layout.world_size, found.layout.dp) == (2, None)
    assert found.resumability is Resumability.EXACT


def test_a_random_state_of_one_rank_missing_is_told_with_its_rank() -> None:
    files = files_of("hf_trainer_two_ranks/checkpoint-4")
    del files["rng_state_0.pth"]
    found = inspect_files(files)
    assert states(found)["random_state"] == "absent"
    assert "first rank 0" in reasons(found)


def test_an_adapter_names_the_model_that_it_needs() -> None:
    found = inspected("hf_trainer_lora/checkpoint-4")
    assert found.resumability is Resumability.EXACT
    assert "of an adapter" in found.pieces.weights.evidence
    assert found.facts["rank"] == 2


def test_without_the_scheduler_trainer_loads_no_optimizer_either() -> None:
    files = files_of(CHECKPOINT)
    del files["scheduler.pt"]
    found = inspect_files(files)
    assert states(found)["optimizer"] == "absent"
    assert "Trainer then loads neither" in found.pieces.optimizer.evidence
    assert found.resumability is Resumability.INCOMPLETE


def test_a_checkpoint_saved_without_its_optimizer_is_whole_and_incomplete() -> None:
    files = {
        name: data for name, data in files_of(CHECKPOINT).items() if not name.startswith(("optim", "sched", "rng"))
    }
    found = inspect_files(files)
    assert (found.complete, found.resumability) == (True, Resumability.INCOMPLETE)


def test_without_the_state_which_comes_last_the_checkpoint_is_not_finished() -> None:
    files = files_of(CHECKPOINT)
    del files["trainer_state.json"]
    found = inspect_files(files, "/out/checkpoint-4")
    assert (found.format, found.step, found.complete) == ("hf-trainer", 4, False)
    assert found.missing == ("trainer_state.json",)


def test_without_weights_nothing_is_whole() -> None:
    files = files_of(CHECKPOINT)
    del files["model.safetensors"]
    found = inspect_files(files)
    assert (found.complete, found.resumability) == (False, Resumability.INCOMPLETE)
    assert "holds no weights" in reasons(found)


@pytest.mark.parametrize(
    ("place", "lost", "ends"),
    [
        (CHECKPOINT, (), True),
        (CHECKPOINT, ("optimizer.pt", "scheduler.pt", "rng_state.pth"), True),  # save_only_model
        (CHECKPOINT, ("rng_state.pth",), False),  # before 4.37 random states come after the state
        ("hf_trainer_two_ranks/checkpoint-4", ("rng_state_1.pth",), False),  # other ranks may still write theirs
    ],
)
def test_the_state_ends_a_save_unless_more_may_come(place: str, lost: tuple[str, ...], ends: bool) -> None:
    files = {name: data for name, data in files_of(place).items() if name not in lost}
    assert inspect_files(files).last_written == (("trainer_state.json",) if ends else ())


@pytest.mark.parametrize("name", ["optimizer.pt", "rng_state.pth", "model.safetensors"])
@pytest.mark.parametrize("part", [0.0, 0.5, 0.98])
def test_any_file_cut_short_leaves_its_piece_absent(name: str, part: float) -> None:
    files = files_of(CHECKPOINT)
    files[name] = files[name][: int(len(files[name]) * part)]
    found = inspect_files(files)
    piece = {"optimizer.pt": "optimizer", "rng_state.pth": "random_state"}.get(name, "weights")
    assert states(found)[piece] == "absent"
    assert found.complete is False
    assert name in reasons(found)


def test_an_optimizer_whose_numbers_were_lost_is_not_called_present() -> None:
    files = files_of(CHECKPOINT)
    files["optimizer.pt"] = without_entry(files["optimizer.pt"], "/data/0")
    found = inspect_files(files)
    assert states(found)["optimizer"] == "absent"
    assert "whose numbers" in reasons(found)


def without_entry(data: bytes, ending: str) -> bytes:
    """The same zip without one of its entries."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for entry in old.infolist():
            if not entry.filename.endswith(ending):
                new.writestr(entry, old.read(entry))
    return out.getvalue()


def test_pieces_of_different_moments_are_told_by_what_the_scheduler_counted() -> None:
    files = files_of(CHECKPOINT)
    files["scheduler.pt"] = files_of("hf_trainer/checkpoint-2")["scheduler.pt"]
    assert "counts 2 steps, trainer_state.json 4" in reasons(inspect_files(files))


def test_a_name_that_says_another_step_is_a_disagreement_and_content_wins() -> None:
    found = inspect_files(files_of(CHECKPOINT), "/out/checkpoint-500")
    assert found.step == 4
    assert found.disagreements == ("trainer_state.json global_step says step 4, name checkpoint-500 says 500",)


def test_a_parent_folder_points_at_the_checkpoints_in_it() -> None:
    with pytest.raises(Unrecognised, match=r"holds 2 \(checkpoint-2, checkpoint-4\)"):
        inspected("hf_trainer")


def test_checkpoints_below_a_finished_model_are_not_counted_into_it() -> None:
    files = files_of(CHECKPOINT)
    found = inspect_files({**files, **{f"checkpoint-2/{name}": data for name, data in files.items()}})
    assert found.facts["checkpoints_below"] == ["checkpoint-2"]
    assert found.files == len(files)
    assert found.bytes == sum(map(len, files.values()))


def without_whole_files(**more: bytes) -> dict[str, bytes]:
    files = {**files_of("hf_trainer_two_ranks/checkpoint-4"), **more}
    del files["optimizer.pt"], files["model.safetensors"]
    return files


def with_deepspeed(zero: str = "zero3", step: int = 4) -> dict[str, bytes]:
    """A checkpoint of Trainer on two ranks with DeepSpeed's own folder in it; the states inside count step 3."""
    shards = files_of(f"deepspeed/{zero}")
    moved = {path.replace("global_step3", f"global_step{step}"): data for path, data in shards.items()}
    return {**without_whole_files(), **moved, "latest": f"global_step{step}".encode()}


def test_deepspeed_inside_is_read_by_its_own_reader() -> None:
    found = inspect_files(with_deepspeed())
    assert found.format == "hf-trainer"
    assert found.pieces.optimizer.evidence.startswith("deepspeed global_step4: 2 files of optimizer states")
    assert states(found)["weights"] == "present"
    assert (found.layout.world_size, found.layout.dp, found.layout.zero_stage) == (2, 2, 3)
    assert (found.parameter_count, found.tensor_count) == (64, 2)
    assert (found.complete, found.resumability) == (True, Resumability.EXACT)


def test_a_whole_model_beside_deepspeeds_shards_is_what_is_counted() -> None:
    model = files_of(CHECKPOINT)["model.safetensors"]
    found = inspect_files({**with_deepspeed(), "model.safetensors": model})
    assert (found.parameter_count, found.pieces.weights.evidence) == (1704, "model.safetensors, 21 tensors")


def test_a_shard_missing_inside_makes_the_whole_incomplete() -> None:
    files = with_deepspeed()
    shard = "global_step4/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
    del files[shard]
    found = inspect_files(files)
    assert found.missing == (shard,)
    assert (states(found)["optimizer"], found.complete) == ("absent", False)
    files[shard] = b""
    assert f"{shard}: is empty" in reasons(inspect_files(files))


def test_deepspeed_that_counts_another_step_is_a_disagreement() -> None:
    found = inspect_files(with_deepspeed(step=799), "/out/checkpoint-4")
    assert found.step == 4
    content = "global_step799/zero_pp_rank_0_mp_rank_00_model_states.pt global_steps"
    assert found.disagreements == (
        f"trainer_state.json global_step says step 4, {content} says 3",
        "trainer_state.json global_step says step 4, folder global_step799 says 799",
    )


def test_shards_and_random_states_of_other_numbers_of_ranks_are_a_disagreement() -> None:
    files = with_deepspeed()
    found = inspect_files({**files, "rng_state_2.pth": files["rng_state_1.pth"]})
    assert "deepspeed was saved by 2 ranks, there are random states of 3" in found.disagreements


def test_a_folder_of_deepspeeds_name_with_nothing_of_its_own_is_not_believed() -> None:
    shard = "global_step4/zero_pp_rank_0_mp_rank_00_optim_states.pt"
    found = inspect_files({**without_whole_files(), shard: b"x"})
    assert (states(found)["optimizer"], found.complete) == ("absent", False)
    assert "no file that DeepSpeed wrote" in reasons(found)


@pytest.mark.parametrize("kind", ["folders", "files"])
def test_fsdp_shards_inside_are_read_by_their_own_reader(kind: str) -> None:
    found = inspect_files({**without_whole_files(), **files_of(f"fsdp/{kind}")})
    assert (states(found)["weights"], states(found)["optimizer"]) == ("present", "present")
    assert found.pieces.optimizer.evidence.endswith(", scheduler.pt")
    assert found.layout.world_size == 2
    assert (found.complete, found.resumability) == (True, Resumability.EXACT)
    assert found.parameter_count == (1112 if kind == "folders" else None)


@pytest.mark.parametrize(
    "lost",
    ["fsdp/folders optimizer_0/.metadata", "fsdp/folders optimizer_0/__1_0.distcp", "fsdp/files optimizer_0_rank0.bin"],
)
def test_fsdp_shards_that_are_missing_leave_no_optimizer(lost: str) -> None:
    kind, path = lost.split()
    files = {**without_whole_files(), **files_of(kind)}
    del files[path]
    found = inspect_files(files)
    assert states(found)["optimizer"] != "present"
    assert (found.complete, found.resumability) == (False, Resumability.INCOMPLETE)


def test_a_real_listing_with_its_shards_left_out_is_incomplete() -> None:
    """A published DeepSpeed checkpoint: six random states, `latest`, and neither model nor optimizer shards."""
    files = files_of(CHECKPOINT)
    random = files["rng_state.pth"]
    kept = {name: files[name] for name in ("config.json", "trainer_state.json", "scheduler.pt", "training_args.bin")}
    kept |= {f"rng_state_{rank}.pth": random for rank in range(6)} | {"latest": b"global_step4"}
    kept["model.safetensors.index.json"] = files_of("safetensors_sharded")["model.safetensors.index.json"]
    found = inspect_files(kept)
    assert (found.step, found.layout.world_size, found.complete) == (4, 6, False)
    assert states(found) == {
        "weights": "absent",
        "optimizer": "absent",
        "data_position": "present",
        "random_state": "present",
    }


def test_another_programs_trainer_state_is_not_taken_for_one() -> None:
    other = json.dumps({"episode": 12, "epsilon": 0.1, "replay_buffer": [1, 2], "global_step": 5}).encode()
    with pytest.raises(Unrecognised):
        inspect_files({"trainer_state.json": other})


@pytest.mark.parametrize(
    "path", sorted(SHARED.glob("trainer_state/*.json")) or [None], ids=lambda path: path and path.stem
)
def test_every_published_state_is_read(path: Path | None) -> None:
    if path is None:
        pytest.skip("the published files are not on this machine")
    source = MemorySource({"trainer_state.json": path.read_bytes()})
    state = read_trainer_state(Listing.of(source))
    document = json.loads(path.read_bytes())
    assert state.global_step == document["global_step"]
    assert state.max_steps in (document["max_steps"], None)
    found = inspect_files({"trainer_state.json": path.read_bytes()})
    assert found.step == document["global_step"]
    assert states(found)["weights"] == "absent"


def test_a_nan_loss_is_a_fact_and_not_an_error() -> None:
    files = files_of(CHECKPOINT)
    state = json.loads(files["trainer_state.json"])
    state["log_history"].append({"step": 4, "loss": float("nan")})
    found = inspect_files({**files, "trainer_state.json": json.dumps(state).encode()})
    assert found.facts["loss"] != found.facts["loss"]


def test_the_random_state_of_every_rank_is_looked_at() -> None:
    files = files_of("hf_trainer_two_ranks/checkpoint-4")
    found = inspect_files({**files, "rng_state_1.pth": files["rng_state_1.pth"][:9000]})
    assert states(found)["random_state"] == "absent"
    assert "rng_state_1.pth" in found.pieces.random_state.evidence


@pytest.mark.parametrize("document", [b'{"step": 20, "loss": 1.5}', b"[20]"])
def test_a_state_of_somebodys_own_leaves_the_folder_to_what_its_other_files_are(document: bytes) -> None:
    found = inspect_files({**files_of(CHECKPOINT), "trainer_state.json": document})
    assert (found.format, found.complete) == ("safetensors", True)
    assert (states(found)["optimizer"], states(found)["random_state"]) == ("present", "present")
    assert "trainer_state.json: is no state of Hugging Face's Trainer" in reasons(found)
    assert "the folder is taken for what its other files are" in reasons(found)


def test_a_state_that_is_cut_short_is_said_to_be_there() -> None:
    files = files_of(CHECKPOINT)
    files["trainer_state.json"] = files["trainer_state.json"][:100]
    found = inspect_files(files)
    assert (found.format, found.complete) == ("hf-trainer", False)
    assert found.pieces.data_position.evidence.startswith("trainer_state.json cannot be read")
