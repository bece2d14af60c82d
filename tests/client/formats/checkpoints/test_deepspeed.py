"""DeepSpeed's checkpoints: ZeRO 1 to 3, pipelines, experts, and Universal."""

import io
import pickle
import re
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import (
    LocalSource,
    PositionEvidence,
    Resumability,
    Unrecognised,
    deepspeed,
    find_format,
    inspect,
)
from cairn.formats.checkpoints.deepspeed_names import missing_of, names_of
from cairn.formats.checkpoints.pickles import UnsafePickle
from cairn.formats.checkpoints.shapes import Presence
from cairn.formats.checkpoints.source import Listing

from tests.client.formats.checkpoints.listings import observed
from tests.client.formats.checkpoints.sources import MemorySource, files_of, inspect_files, inspected, reasons, states
from tests.client.slowness import slowness

ZERO1 = "deepspeed/zero1/global_step3"
ZERO2 = "deepspeed/zero2/global_step3"
ZERO3 = "deepspeed/zero3/global_step3"
UNIVERSAL = "deepspeed/universal"
PIPELINE = "deepspeed/pipeline/global_step20"


@pytest.mark.parametrize(("folder", "stage"), [(ZERO1, 1), (ZERO2, 2), (ZERO3, 3)])
def test_a_real_save_of_each_stage_is_read(folder: str, stage: int) -> None:
    found = inspected(folder)
    assert (found.format, found.format_version, found.complete) == ("deepspeed-zero", "0.19.8", True)
    assert (found.layout.zero_stage, found.layout.sharding) == (stage, f"zero-{stage}")
    assert (found.layout.world_size, found.layout.dp, found.layout.tp, found.layout.pp) == (2, 2, 1, 1)
    assert found.layout.extra["evidence"]["zero_stage"].endswith("optim_states.pt zero_stage")
    assert (found.step, found.step_source.rpartition(" ")[2]) == (3, "global_steps")
    assert found.parameter_count == 64
    assert found.problems == ()


def test_pieces_come_with_the_key_that_says_so() -> None:
    pieces = inspected(ZERO1).pieces
    assert pieces.weights.evidence == "mp_rank_00_model_states.pt module"
    assert pieces.optimizer.evidence == (
        "2 files of optimizer states, bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt and on; "
        "mp_rank_00_model_states.pt lr_scheduler"
    )
    assert pieces.data_position.position is PositionEvidence.COUNTER
    assert "global_samples = 12; DeepSpeed itself skips no batches" in pieces.data_position.evidence
    assert pieces.random_state.evidence == "mp_rank_00_model_states.pt torch_rng_state"


def test_state_of_a_sampler_counts_more_than_the_counter() -> None:
    found = inspected("deepspeed/moe")
    assert found.pieces.data_position.position is PositionEvidence.STATE
    assert (states(found)["random_state"], found.resumability) == ("absent", Resumability.RESUMABLE)


def test_the_client_state_is_told_apart_from_deepspeeds_own_keys() -> None:
    assert inspected(ZERO2).facts["client_state"] == ["epoch", "torch_rng_state"]


def test_under_zero_3_the_weights_are_in_the_optimizers_files() -> None:
    files = files_of(ZERO3)
    assert states(inspect_files(files))["weights"] == "present"
    found = inspect_files({path: data for path, data in files.items() if "optim" not in path})
    assert states(found)["weights"] == states(found)["optimizer"] == "absent"


def test_latest_names_the_folder_that_is_read() -> None:
    files = files_of("deepspeed/zero1")
    older = {path.replace("global_step3/", "global_step2/"): data for path, data in files.items() if "/" in path}
    found = inspect_files({**files, **older}, "/ckpt/run")
    assert (found.root, found.facts["latest"]) == ("/ckpt/run/global_step3", "global_step3")
    assert found.facts["other_checkpoints"] == ["global_step2"]
    with pytest.raises(Unrecognised):  # of two and no pointer none is chosen
        inspect_files({path: data for path, data in {**files, **older}.items() if path != "latest"})


def test_a_latest_that_names_what_is_not_there_is_told() -> None:
    found = inspect_files({**files_of("deepspeed/zero1"), "latest": b"global_step9"}, "/ckpt/run")
    assert found.root == "/ckpt/run/global_step3"
    assert "latest says 'global_step9', and global_step3 is what is there" in found.disagreements


def test_the_two_numbers_of_a_folder_that_disagrees_are_both_kept() -> None:
    files = {f"global_step2/{path}": data for path, data in files_of(ZERO2).items()}
    found = inspect_files(files, "/ckpt/checkpoint-4")
    assert found.step == 3
    assert [each.rpartition(", ")[2] for each in found.disagreements] == [
        "name global_step2 says 2",
        "name checkpoint-4 says 4",
    ]


@pytest.mark.parametrize(
    ("path", "piece"),
    [("bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "optimizer"), ("mp_rank_00_model_states.pt", "weights")],
)
def test_a_rank_that_is_missing_is_named_and_its_piece_is_not_there(path: str, piece: str) -> None:
    files = files_of(ZERO1)
    del files[path]
    found = inspect_files(files)
    assert (found.missing, found.complete, found.resumability) == ((path,), False, Resumability.INCOMPLETE)
    assert dict(found.pieces.items())[piece].state is not Presence.PRESENT


def test_model_states_alone_are_whole_only_where_latest_names_them() -> None:
    files = {path: data for path, data in files_of("deepspeed/zero1").items() if "optim" not in path}
    assert inspect_files(files, "/ckpt/run").complete is True
    alone = {path: data for path, data in files.items() if path != "latest"}
    assert inspect_files(alone, "/ckpt/run").complete is None


def test_under_zero_3_a_missing_partition_takes_weights_and_optimizer() -> None:
    files = files_of(ZERO3)
    del files[next(path for path in files if "pp_rank_1" in path and "optim" in path)]
    found = inspect_files(files).pieces
    assert (found.weights.state, found.optimizer.state) == (Presence.ABSENT, Presence.ABSENT)
    assert "not whole: " in found.weights.evidence


def test_the_highest_rank_is_missed_too_since_the_states_tell_the_degree() -> None:
    files = {path: data for path, data in files_of(ZERO3).items() if "pp_rank_1" not in path}
    assert inspect_files(files).missing == (
        "zero_pp_rank_1_mp_rank_00_model_states.pt",
        "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
    )


def test_a_shard_that_was_cut_short_or_is_empty_is_told() -> None:
    files = files_of(ZERO2)
    last = "zero_pp_rank_1_mp_rank_00_optim_states.pt"
    assert f"{last}: was cut short: it is a zip without its end" in reasons(
        inspect_files({**files, last: files[last][:-30]})
    )
    assert f"{last}: is empty" in reasons(inspect_files({**files, last: b""}))
    assert f"{last}: holds nothing but zeros" in reasons(inspect_files({**files, last: bytes(500)}))


def test_model_states_cut_short_leave_names_and_optimizer_to_tell() -> None:
    files = files_of(ZERO2)
    files["mp_rank_00_model_states.pt"] = files["mp_rank_00_model_states.pt"][:1000]
    found = inspect_files(files, "/ckpt/global_step3")
    assert (found.step, found.step_source, found.complete) == (3, "name global_step3", False)
    assert (found.layout.zero_stage, found.layout.dp) == (2, 2)
    assert found.layout.extra["evidence"]["dp"] == "the files' names go up to rank 1"
    assert states(found) == {
        "weights": "unknown",
        "optimizer": "present",
        "data_position": "unknown",
        "random_state": "unknown",
    }


def test_names_beyond_what_the_states_say_are_a_disagreement() -> None:
    files = files_of(ZERO2)
    files["zero_pp_rank_4_mp_rank_00_optim_states.pt"] = files["zero_pp_rank_1_mp_rank_00_optim_states.pt"]
    found = inspect_files(files)
    assert "mp_rank_00_model_states.pt dp_world_size says 2, the files' names go up to rank 4" in found.disagreements
    assert found.missing == tuple(f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (2, 3))


def test_a_pipeline_tells_its_degrees_and_its_missing_layers() -> None:
    found = inspected("deepspeed/pipeline")
    assert (found.layout.tp, found.layout.pp, found.layout.dp, found.layout.world_size) == (2, 2, 2, 8)
    assert found.pieces.weights.evidence == "6 files of pipeline layers"
    assert found.pieces.data_position.evidence.endswith("args.consumed_train_samples = 160")
    files = files_of(PIPELINE)
    del files["layer_03-model_01-model_states.pt"]
    assert inspect_files(files).missing == ("layer_03-model_01-model_states.pt",)


def test_experts_and_their_optimizer_states_are_counted() -> None:
    found = inspected("deepspeed/moe")
    assert (found.layout.ep, found.layout.extra["evidence"]["ep"]) == (2, "2 files expp_rank_*")
    assert found.parameter_count is None  # the experts' files are not opened
    files = files_of("deepspeed/moe/global_step20")
    del files["layer_0_expert_0_mp_rank_00_model_states.pt"]
    assert inspect_files(files).missing == ("layer_0_expert_0_mp_rank_00_model_states.pt",)


def test_a_real_universal_checkpoint_is_read_by_its_parameters() -> None:
    found = inspected(UNIVERSAL)
    assert (found.format, found.complete, found.step) == ("deepspeed-universal", True, 3)
    assert found.pieces.weights.evidence == "fp32.pt of 2 parameters below zero/"
    assert found.pieces.optimizer.evidence.startswith("exp_avg.pt, exp_avg_sq.pt below zero/; ")
    assert (found.layout.sharding, found.layout.dp) == ("universal", 2)
    assert found.facts["latest_universal"] == "global_step3_universal"


def test_a_parameter_that_lacks_a_moment_or_its_folder_is_named() -> None:
    files = files_of(f"{UNIVERSAL}/global_step3_universal")
    del files["zero/embed.weight/exp_avg_sq.pt"]
    assert inspect_files(files).missing == ("zero/embed.weight/exp_avg_sq.pt",)
    files = {path: data for path, data in files.items() if not path.startswith("zero/embed.weight")}
    assert inspect_files(files).missing == ("zero/embed.weight/fp32.pt",)


def test_random_states_beside_the_folder_count() -> None:
    files = {f"global_step20/{path}": data for path, data in files_of("deepspeed/moe/global_step20").items()}
    found = inspect_files({**files, "random_states_0.pkl": b"1"}, "/ckpt/x")
    assert (found.pieces.random_state.evidence, found.resumability) == (
        "random_states_0.pkl, 1 files beside the states",
        Resumability.EXACT,
    )


class Evil:
    def __reduce__(self) -> Any:
        return exec, ("1",)


@pytest.mark.parametrize("path", ["mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt"])
def test_states_that_would_run_code_are_refused_by_their_name(path: str) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"module": Evil()}, protocol=2))
    with pytest.raises(UnsafePickle, match=rf"{re.escape(path)}: .*exec"):
        inspect_files({**files_of(ZERO2), path: content.getvalue()})


def test_the_names_of_every_release_are_known() -> None:
    names = names_of(
        [
            "fp16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "zero_pp_rank_1_mp_rank_00optim_states.pt",
            "layer_00-model_states.pt",
            "expert_3_mp_rank_00_model_states.pt",
            "mp_rank_00_model_states.pt.tmp",
            "other/mp_rank_00_model_states.pt",
        ]
    )
    assert sorted(names.optim) == [(0, 0), (1, 0)]
    assert (sorted(names.layers), sorted(names.experts), names.model) == ([(0, 0)], [(-1, 3, 0)], {})


def test_degrees_beyond_reason_ask_for_nothing() -> None:
    names = names_of(["zero_pp_rank_99999999_mp_rank_99999_optim_states.pt"])
    assert missing_of(names, None, None) == []


def test_names_of_somebody_else_are_not_deepspeeds() -> None:
    notes = {"mp_rank_00_model_states.pt": b"notes about the run", "latest": b"global_step3"}
    assert not deepspeed.matches(Listing.of(MemorySource(notes)))


def test_ten_thousand_shards_are_told_of_in_three_seconds(tmp_path: Path) -> None:
    folder = tmp_path / "global_step3"
    folder.mkdir()
    files = files_of(ZERO2)
    (folder / "mp_rank_00_model_states.pt").write_bytes(files["mp_rank_00_model_states.pt"])
    shard = files["zero_pp_rank_1_mp_rank_00_optim_states.pt"]
    for rank in range(10_000):
        (folder / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt").write_bytes(shard)
    started = time.process_time()
    found = inspect(LocalSource(folder))
    took = time.process_time() - started
    assert (found.files, found.problems, found.layout.dp) == (10_001, (), 2)
    assert took < 3 * slowness()


def test_no_byte_of_a_shard_is_read_but_its_directory_and_its_end() -> None:
    files = files_of(ZERO2)
    large = bytes(5_000_000)
    content = io.BytesIO(files["zero_pp_rank_1_mp_rank_00_optim_states.pt"])
    with zipfile.ZipFile(content, "a") as archive:
        archive.writestr("large", large)
    source = MemorySource({**files, "zero_pp_rank_1_mp_rank_00_optim_states.pt": content.getvalue()})
    inspect(source)
    assert source.read_bytes < 3 * sum(map(len, files.values()))


@pytest.mark.parametrize(("outer", "inner"), [(200, 200), (800, 799), (1200, 1192)])
def test_a_folder_of_trainer_and_deepspeed_keeps_both_steps(outer: int, inner: int) -> None:
    cut = files_of(ZERO2)["mp_rank_00_model_states.pt"][:1000]
    found = inspect_files({f"global_step{inner}/mp_rank_00_model_states.pt": cut}, f"/ckpt/checkpoint-{outer}")
    assert found.step == inner
    told = (f"name global_step{inner} says step {inner}, name checkpoint-{outer} says {outer}",)
    assert found.disagreements == (told if outer != inner else ())


def test_listings_that_were_seen_in_public_are_recognised() -> None:
    listings = {each["kind"]: each for each in observed()}
    if not listings:
        pytest.skip("the collection of public listings is not at hand")
    cut = files_of(ZERO2)["mp_rank_00_model_states.pt"][:1000]
    for path, _ in listings["deepspeed step mismatch"]["files"]:
        outer, _, folder = path.partition("/")
        assert find_format(MemorySource({f"{folder}/mp_rank_00_model_states.pt": cut}, f"/ckpt/{outer}")) == "deepspeed"
    # There `latest` outlived the folder that it names: nothing of DeepSpeed is left to read.
    left = {path: str(content).encode() for path, content in listings["deepspeed latest"]["files"]}
    assert not deepspeed.matches(Listing.of(MemorySource(left)))
