"""Megatron's checkpoints: dist-checkpointing with both backends, the older form, and a run's tracker."""

import argparse
import io
import json
import pickle
import re
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import PositionEvidence, Resumability, Unreadable, find_format, megatron
from cairn.formats.checkpoints.megatron_args import namespace, plain, said_of
from cairn.formats.checkpoints.pickles import Global, Record, UnsafePickle
from cairn.formats.checkpoints.source import Listing

from tests.client.formats.checkpoints.listings import files_listed, observed
from tests.client.formats.checkpoints.sources import MemorySource, files_of, inspect_files, inspected, reasons, states

DIST = "megatron/torch_dist"
ZARR = "megatron/zarr/iter_0000020"
PARALLEL = "megatron/legacy/parallel/iter_0000020"
SINGLE = "megatron/legacy/single/iter_0000020"


def test_a_real_dist_checkpoint_tells_every_piece_and_where_it_stands() -> None:
    found = inspected(f"{DIST}/iter_0000020")
    assert (found.format, found.format_version, found.complete) == ("megatron-torch-dist", "1", True)
    assert (found.step, found.step_source) == (20, "common.pt iteration")
    assert found.pieces.optimizer.evidence.endswith("common.pt opt_param_scheduler")
    assert found.pieces.data_position.position is PositionEvidence.COUNTER
    assert found.pieces.data_position.evidence == "common.pt args.consumed_train_samples = 160"
    assert found.pieces.random_state.evidence.startswith("rng_state/shard_")
    assert found.resumability is Resumability.EXACT
    assert (found.parameter_count, found.dtypes) == (64, {"bf16": 64})


def test_the_layout_is_that_of_the_arguments_and_says_so() -> None:
    layout = inspected(f"{DIST}/iter_0000020").layout
    assert (layout.world_size, layout.tp, layout.pp, layout.dp, layout.cp, layout.ep) == (4, 2, 2, 1, 1, 1)
    assert layout.extra["evidence"]["tp"] == "common.pt args.tensor_model_parallel_size"
    assert layout.sharding == layout.extra["distrib_optim_sharding_type"] == "fully_reshardable"


def test_what_the_position_depends_on_is_kept_as_plain_values() -> None:
    facts = inspected(f"{DIST}/iter_0000020").facts
    assert facts["data_path"] == ["0.7", "web", "0.3", "code"]
    assert (facts["seed"], facts["global_batch_size"], facts["params_dtype"]) == (1234, 8, "bfloat16")
    assert len(facts["save_id"]) == 36


def test_without_arguments_the_ranks_are_told_by_the_random_states() -> None:
    files = files_of(f"{DIST}/iter_0000020")
    del files["common.pt"]
    found = inspect_files(files, "/ckpt/iter_0000020")
    assert (found.layout.pp, found.layout.tp, found.layout.dp) == (2, 2, None)
    assert found.layout.extra["evidence"]["pp"] == "keys rng_state/shard_*_2.2"
    assert (found.missing, found.complete) == (("common.pt",), False)
    assert states(found)["data_position"] == "unknown"


def test_the_tracker_chooses_the_checkpoint_of_a_run() -> None:
    files = files_of(DIST)
    older = {path.replace("iter_0000020", "iter_0000010"): data for path, data in files.items() if "iter_" in path}
    found = inspect_files({**files, **older}, "/ckpt/run")
    assert (found.root, found.step) == ("/ckpt/run/iter_0000020", 20)
    assert found.facts["other_checkpoints"] == ["iter_0000010"]
    found = inspect_files({**files, **older, megatron.TRACKER: b"10\n"}, "/ckpt/run")
    assert found.root == "/ckpt/run/iter_0000010"
    assert found.disagreements == (
        "common.pt iteration says step 20, name iter_0000010 says 10",
        f"common.pt iteration says step 20, {megatron.TRACKER} says 10",
    )


def test_a_tracker_that_names_what_is_not_there_is_told() -> None:
    files = {**files_of(DIST), megatron.TRACKER: b"30"}
    with pytest.raises(Unreadable, match=re.escape("says '30', and no such folder is there; there are iter_0000020")):
        inspect_files(files)


def test_a_cairn_json_inside_the_checkpoint_that_the_tracker_names_is_read() -> None:
    said = {"cairn": 1, "project": "llm", "run": {"name": "a"}, "attempt": 1, "step": 20, "kind": "archive"}
    files = {**files_of(DIST), "iter_0000020/cairn.json": json.dumps(said).encode()}
    found = inspect_files(files)
    assert found.identity is not None
    assert found.identity["project"] == "llm"
    assert found.files == len(files_of(DIST)) - 1


def test_metadata_json_is_written_last_so_without_it_the_save_did_not_end() -> None:
    files = files_of(f"{DIST}/iter_0000020")
    del files["metadata.json"]
    found = inspect_files(files, "/ckpt/iter_0000020")
    assert (found.format, found.complete, found.missing) == ("megatron-torch-dist", False, ("metadata.json",))
    assert "still being written, or broken off" in reasons(found)


def test_a_shard_that_is_missing_or_short_makes_it_incomplete() -> None:
    files = files_of(f"{DIST}/iter_0000020")
    short = {**files, "__2_0.distcp": files["__2_0.distcp"][:100]}
    assert "__2_0.distcp: was cut short" in reasons(inspect_files(short))
    del files["__2_0.distcp"]
    found = inspect_files(files)
    assert (found.missing, found.resumability) == (("__2_0.distcp",), Resumability.INCOMPLETE)


def test_state_of_a_loader_counts_more_than_the_counter() -> None:
    loaders = {f"train_dataloader_dprank{rank:03d}.pt": b"1" for rank in range(2)}
    found = inspect_files({**files_of(f"{DIST}/iter_0000020"), **loaders})
    assert found.pieces.data_position.position is PositionEvidence.STATE
    assert found.pieces.data_position.evidence == "train_dataloader_dprank000.pt and 1 more"


def test_the_zarr_backend_is_read_by_its_folders() -> None:
    found = inspected(ZARR)
    assert (found.format, found.complete, found.resumability) == ("megatron-zarr", True, Resumability.EXACT)
    assert found.pieces.weights.evidence == "the folder lists 1 tensors in 2 parts"
    assert (found.parameter_count, found.dtypes, found.layout.tp) == (32, {"bf16": 32}, 2)
    assert found.layout.sharding == "fully_sharded_model_space"
    assert found.pieces.random_state.evidence == "rng_state/shard_0.0_1.2 and 1 more"


def test_a_chunk_that_is_missing_or_short_is_told() -> None:
    files = files_of(ZARR)
    key = "optimizer.state.exp_avg.model.decoder.layers.mlp.linear_fc1.weight"
    files[f"{key}/1.0"] = files[f"{key}/1.0"][:10]
    del files[f"{key}/0.0"]
    found = inspect_files(files)
    assert found.missing == (f"{key}/0.0",)
    assert f"{key}/1.0: was cut short: it has 10 bytes and must hold 64" in reasons(found)


@pytest.mark.parametrize(
    "array",
    [
        b"{}",
        b"[1]",
        b"{",
        b'{"zarr_format": 2, "shape": [4], "chunks": [0], "dtype": "<f4"}',
        b'{"zarr_format": 2, "shape": [1e9], "chunks": [1], "dtype": "<f4"}',
        b'{"zarr_format": 2, "shape": [1000000000], "chunks": [1], "dtype": "<f4"}',
        b"[" * 10_000,
    ],
)
def test_an_array_that_makes_no_sense_is_a_problem_of_its_own(array: bytes) -> None:
    found = inspect_files({**files_of(ZARR), "odd/.zarray": array})
    assert "odd/.zarray" in reasons(found)
    assert (found.complete, found.parameter_count) == (False, 32)


def test_the_older_form_tells_pieces_from_the_first_rank() -> None:
    found = inspected(PARALLEL)
    assert (found.format, found.format_version, found.complete, found.step) == ("megatron-legacy", "3.0", True, 20)
    assert found.pieces.optimizer.evidence == "mp_rank_00_000/distrib_optim.pt; opt_param_scheduler"
    assert found.facts["ranks_expected"] == "mp_rank_00_000/model_optim_rng.pt says TP 2, PP 2"
    assert found.resumability is Resumability.EXACT
    assert found.parameter_count is None  # what the ranks replicate is written nowhere


def test_one_rank_that_holds_everything_tells_the_parameters_too() -> None:
    found = inspected(SINGLE)
    assert (found.parameter_count, found.dtypes, found.layout.world_size) == (72, {"bf16": 64, "f32": 8}, 1)


def test_ranks_that_the_arguments_promise_and_nobody_wrote_are_named() -> None:
    files = {path: data for path, data in files_of(PARALLEL).items() if not path.startswith("mp_rank_01_001")}
    found = inspect_files(files)
    assert found.missing == ("mp_rank_01_001/distrib_optim.pt", "mp_rank_01_001/model_optim_rng.pt")
    assert (found.complete, found.resumability) == (False, Resumability.INCOMPLETE)


def test_without_arguments_completeness_is_not_claimed() -> None:
    files = {
        f"mp_rank_{rank:02d}/model_optim_rng.pt": files_of(SINGLE)["mp_rank_00/model_optim_rng.pt"][:3000]
        for rank in (0, 2)
    }
    found = inspect_files(files, "/ckpt/iter_0000005")
    assert found.missing == ("mp_rank_01/model_optim_rng.pt",)
    assert "mp_rank_02/model_optim_rng.pt: was cut short: it is a zip without its end" in reasons(found)
    assert (found.layout.tp, found.step, states(found)["weights"]) == (None, 5, "unknown")


def test_an_empty_rank_file_is_told() -> None:
    files = {**files_of(PARALLEL), "mp_rank_01_000/model_optim_rng.pt": b""}
    assert "mp_rank_01_000/model_optim_rng.pt: is empty" in reasons(inspect_files(files))


def test_settings_of_a_distributed_optimizer_without_its_file_are_no_optimizer() -> None:
    files = {path: data for path, data in files_of(PARALLEL).items() if not path.endswith("distrib_optim.pt")}
    assert states(inspect_files(files))["optimizer"] == "absent"


class Evil:
    def __reduce__(self) -> Any:
        return eval, ("1 + 1",)


@pytest.mark.parametrize(
    ("folder", "path"), [(f"{DIST}/iter_0000020", "common.pt"), (SINGLE, "mp_rank_00/model_optim_rng.pt")]
)
def test_a_file_that_would_run_code_is_refused_by_its_name(folder: str, path: str) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"args": Evil(), "iteration": 1}, protocol=2))
    with pytest.raises(UnsafePickle, match=rf"{re.escape(path)}: .*eval"):
        inspect_files({**files_of(folder), path: content.getvalue()})


def test_arguments_that_hold_a_signal_or_a_path_are_plain_and_not_refused() -> None:
    args = argparse.Namespace(
        exit_signal=signal.SIGTERM, save=Path("/ckpt"), consumed_train_samples=8, seed=signal.SIGINT
    )
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps({"args": args, "iteration": 20}, protocol=2))
    found = inspect_files({**files_of(f"{DIST}/iter_0000020"), "common.pt": content.getvalue()})
    assert found.pieces.data_position.evidence == "common.pt args.consumed_train_samples = 8"
    assert found.facts["seed"] == "signal.Signals(2)"


def test_common_state_cut_short_is_a_problem_and_the_shards_still_described() -> None:
    files = files_of(f"{DIST}/iter_0000020")
    files["common.pt"] = files["common.pt"][:500]
    found = inspect_files(files, "/ckpt/iter_0000020")
    assert (found.step, found.step_source, found.parameter_count) == (20, "name iter_0000020", 64)
    assert "common.pt" in reasons(found)
    assert found.complete is False


def test_a_backend_that_nobody_knows_is_told() -> None:
    files = {"metadata.json": b'{"sharded_backend": "carrier-pigeon"}', "common.pt": b""}
    found = inspect_files(files)
    assert "names the backend 'carrier-pigeon'; known are torch_dist, zarr" in reasons(found)


def test_a_metadata_json_of_somebody_else_is_not_megatrons() -> None:
    for content in (b'{"name": "dataset"}', b"[]", b"{", b'{"sharded_backend": 5}'):
        assert not megatron.matches(Listing.of(MemorySource({"metadata.json": content})))


def test_values_of_the_arguments_become_plain() -> None:
    state = {"a": 1, "dtype": Global("torch", "bfloat16"), 5: "no name"}
    args = namespace(Record(Global("argparse", "Namespace"), state=state))
    assert args == {"a": 1, "dtype": Global("torch", "bfloat16")}
    assert namespace(Record(Global("some", "Class"), state=state)) == {}
    assert plain(Record(Global("megatron.core.enums", "ModelType"), (2,))) == "megatron.core.enums.ModelType(2)"
    assert plain(object()) == "object"


def test_degrees_that_are_no_counts_are_unknown() -> None:
    args = {"tensor_model_parallel_size": True, "pipeline_model_parallel_size": 0, "world_size": "8"}
    layout = said_of({"args": args}, "common.pt").layout()
    assert (layout.tp, layout.pp, layout.world_size) == (None, None, None)


OWN_LISTINGS = {
    "tracker": [
        ["latest_checkpointed_iteration.txt", "500"],
        ["iter_0000400/", None],
        ["iter_0000500/metadata.json", {"sharded_backend": "torch_dist", "sharded_backend_version": 1}],
        ["iter_0000500/.metadata", None],
        ["iter_0000500/__0_0.distcp", 4096],
        ["iter_0000500/common.pt", 4096],
    ],
    "release": [
        ["latest_checkpointed_iteration.txt", "release"],
        ["release/metadata.json", {"sharded_backend": "zarr"}],
    ],
    "nemo": [["weights/metadata.json", {"sharded_backend": "torch_dist"}], ["weights/common.pt", None]],
}


@pytest.mark.parametrize(("name", "step"), [("tracker", 500), ("release", None), ("nemo", None)])
def test_folders_are_recognised_by_their_names_alone(name: str, step: int | None) -> None:
    found = inspect_files(files_listed(OWN_LISTINGS[name]))
    assert found.format in ("megatron-torch-dist", "megatron-zarr")
    assert (found.step, found.complete) == (step, False)


@pytest.mark.parametrize(
    ("kind", "step"), [("megatron tracker", 2), ("megatron release", None), ("nemo metadata without version", None)]
)
def test_a_listing_that_was_seen_in_public_is_recognised(kind: str, step: int | None) -> None:
    listing = next((each for each in observed() if each["kind"] == kind), None)
    if listing is None:
        pytest.skip("the collection of public listings is not at hand")
    source = MemorySource(files_listed(listing["files"]))
    assert find_format(source) == "megatron"
    found = megatron.read(Listing.of(source))
    assert (found.step, found.complete) == (step, False)
