"""Checkpoints of torch's distributed checkpointing: what `.metadata` says, and whether the files can hold it."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import LocalSource, PositionEvidence, Resumability, Unreadable, find_format, inspect
from cairn.formats.checkpoints.dcp_keys import Kind, kind_of
from cairn.formats.checkpoints.dcp_metadata import DcpMetadata, parse
from cairn.formats.checkpoints.pickles import PickleFault, UnsafePickle
from cairn.formats.checkpoints.shapes import Presence

from tests.client.formats.checkpoints import made_pickles as made
from tests.client.formats.checkpoints.made_pickles import Call, Made, Named
from tests.client.formats.checkpoints.sources import MemorySource, files_of, inspect_files, inspected, reasons, states
from tests.client.slowness import slowness

FSDP = "dcp/fsdp2/step-20"


def test_a_real_save_of_four_ranks_tells_pieces_with_their_evidence() -> None:
    found = inspected(FSDP)
    assert (found.format, found.format_version, found.complete, found.problems) == ("torch-dcp", "1.0.0", True, ())
    assert found.pieces.weights.evidence == ".metadata lists 2 tensors in 8 parts"
    assert "optimizer.state.embed.weight.exp_avg; scheduler: lr_scheduler.last_epoch" in found.pieces.optimizer.evidence
    assert found.pieces.data_position.position is PositionEvidence.STATE
    assert found.pieces.data_position.evidence.startswith("dataloader.dp_rank_0 and ")
    assert found.pieces.random_state.state is Presence.ABSENT
    assert found.resumability is Resumability.RESUMABLE


def test_parameters_are_counted_of_the_weights_alone() -> None:
    found = inspected(FSDP)
    assert (found.parameter_count, found.dtypes, found.tensor_count) == (64, {"f32": 64}, 10)
    weights = {each.name: (each.shape, each.chunks) for each in found.tensors if each.piece == "weights"}
    assert weights == {"embed.weight": ((8, 4), 4), "head.weight": ((4, 8), 4)}


def test_the_step_comes_from_its_entry_in_the_shards_before_the_folders_name() -> None:
    found = inspected(FSDP)
    assert (found.step, found.step_source) == (20, ".metadata train_state.step")
    assert found.facts["counters"]["train_state.ntokens_seen"] == 2**33
    renamed = inspect_files(files_of(FSDP), "/ckpt/step-99")
    assert renamed.step == 20
    assert renamed.disagreements == (".metadata train_state.step says step 20, name step-99 says 99",)


def test_degrees_are_told_where_the_files_tell_them_and_no_others() -> None:
    layout = inspected(FSDP).layout
    assert (layout.world_size, layout.dp) == (4, 4)
    assert (layout.tp, layout.pp, layout.cp, layout.ep, layout.zero_stage) == (None,) * 5
    assert layout.extra["evidence"]["dp"] == "dataloader.world_size is 4"
    assert layout.extra["cut_dimensions"] == {"0": 4}


def test_a_tensor_cut_in_two_dimensions_is_told_so() -> None:
    found = inspected("dcp/2d/step-5")
    assert found.layout.extra["cut_dimensions"] == {"0": 2, "1": 2}
    assert (found.step, found.step_source, found.resumability) == (5, "name step-5", Resumability.WEIGHTS_ONLY)
    assert found.dtypes == {"bf16": 32, "f32": 6}


def test_model_and_optimizer_in_folders_of_their_own_are_one_checkpoint() -> None:
    found = inspected("dcp/parts/checkpoint_3")
    assert found.facts["parts"] == ["optimizer_0", "pytorch_model_fsdp_0"]
    assert (states(found)["weights"], states(found)["optimizer"]) == ("present", "present")
    files = files_of("dcp/parts/checkpoint_3")
    del files["optimizer_0/__1_0.distcp"]
    assert inspect_files(files).missing == ("optimizer_0/__1_0.distcp",)


def test_folders_of_other_names_are_checkpoints_of_their_own() -> None:
    files = {f"{run}/{path}": data for run in ("run-a", "run-b") for path, data in files_of("dcp/2d/step-5").items()}
    assert find_format(MemorySource(files)) is None


def test_metadata_that_each_rank_wrote_is_added_up() -> None:
    found = inspected("dcp/each_rank/step-7")
    assert (found.tensor_count, found.complete, found.layout.world_size) == (2, True, 2)


def test_no_byte_of_a_shard_is_read_but_the_counters() -> None:
    files = files_of(FSDP)
    source = MemorySource(files)
    inspect(source)
    assert source.read_bytes < len(files[".metadata"]) + 3 * 2048 + 256


def test_a_missing_shard_is_named_and_no_world_size_claimed() -> None:
    files = files_of(FSDP)
    del files["__3_0.distcp"]
    found = inspect_files(files)
    assert (found.missing, found.complete) == (("__3_0.distcp",), False)
    assert found.resumability is Resumability.INCOMPLETE
    assert found.pieces.weights.state is Presence.ABSENT
    assert found.pieces.weights.evidence.endswith("; but not whole: __3_0.distcp")
    assert found.layout.world_size is None


def test_a_shard_too_short_for_what_it_must_hold_is_told_with_both_sizes() -> None:
    files = files_of(FSDP)
    whole = len(files["__1_0.distcp"])
    files["__1_0.distcp"] = files["__1_0.distcp"][: whole - 1]
    found = inspect_files(files)
    assert f"__1_0.distcp: was cut short: it has {whole - 1:,} bytes and must hold {whole:,}" in reasons(found)
    assert found.complete is False


def test_shards_without_metadata_are_a_save_that_did_not_end() -> None:
    files = files_of(FSDP)
    files[".metadata.tmp"] = files.pop(".metadata")[:100]
    found = inspect_files(files, "/ckpt/step-20")
    assert (found.format, found.step, found.complete, found.missing) == ("torch-dcp", 20, False, (".metadata",))
    assert set(states(found).values()) == {"unknown"}
    assert ".metadata.tmp: is left over from a save that did not end" in reasons(found)


@pytest.mark.parametrize("length", [0, 1, 2, 100, 5000])
def test_metadata_cut_short_is_told_and_the_rest_still_described(length: int) -> None:
    files = files_of(FSDP)
    files[".metadata"] = files[".metadata"][:length]
    found = inspect_files(files, "/ckpt/step-20")
    assert (found.complete, found.step, found.files) == (False, 20, 5)
    assert ".metadata: cannot be read" in reasons(found) or ".metadata" in found.missing


def test_a_part_that_is_in_no_file_is_told() -> None:
    parts = [made.chunk((0, 0), (4, 8)), made.chunk((4, 0), (4, 8))]
    one = [made.entry("w", (0, 0), "__0_0.distcp", 0, 100)]
    for tensor in (made.tensor((8, 8), parts), made.tensor((8, 8), parts[:1])):
        found = inspect_files({".metadata": made.metadata({"w": tensor}, one), "__0_0.distcp": bytes(100)})
        assert found.complete is False
        assert "says of w less than the whole" in reasons(found)


def test_files_that_the_metadata_does_not_need_are_pointed_at() -> None:
    found = inspect_files({**files_of(FSDP), "__4_0.distcp": bytes(10), "__5_0.distcp": b""})
    assert "__4_0.distcp: the metadata needs nothing of 1 files that hold something" in reasons(found)
    assert found.complete is True


def test_metadata_that_names_files_outside_reads_none_of_them() -> None:
    entries = [made.entry("w", (0,), "../../etc/passwd", 0, 10)]
    found = inspect_files({".metadata": made.metadata({"w": made.tensor((4,), [made.chunk((0,), (4,))])}, entries)})
    assert (found.missing, found.complete) == (("../../etc/passwd",), False)


def test_what_lies_beside_the_shards_completes_the_pieces() -> None:
    rank = files_of("deepspeed/moe")["global_step20/mp_rank_00_model_states.pt"]
    files = {f"model_and_optim/{path}": data for path, data in files_of("dcp/2d/step-5").items()}
    found = inspect_files({**files, "train/rank0.pt": rank, "train/rank1.pt": rank}, "/ckpt/step1000")
    assert found.pieces.data_position.evidence == "train/rank0.pt data_sampler, in each of 2 files"
    assert found.pieces.data_position.position is PositionEvidence.STATE


MARK = "would-have-run"
EVIL: Mapping[str, Any] = {
    "system": Call(Named("posix", "system"), (f"touch {MARK}",)),
    "eval": Call(Named("builtins", "eval"), (f"open('{MARK}', 'w')",)),
    "getattr": Call(Named("builtins", "getattr"), (Named(made.METADATA, "Metadata"), "x")),
    "torch.load": Call(Named("torch", "load"), ("x",)),
    "dotted": Call(Named("torch.serialization", "os.system"), ("x",)),
    "unknown class": Made(Named("somewhere.else", "Class")),
    "class of the same module": Made(Named(made.METADATA, "Stranger")),
    "a planner of somebody": Made(Named("torch.distributed.checkpoint.planner", "SavePlanner")),
}


@pytest.mark.parametrize("name", EVIL)
def test_metadata_that_names_what_it_has_no_use_for_is_refused_and_not_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for data in (made.pickled(EVIL[name]), made.metadata({}, [], planner_data={"w": EVIL[name]})):
        with pytest.raises(UnsafePickle, match="refused"):
            inspect_files({".metadata": data, "__0_0.distcp": b"1"})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "data",
    [
        made.pickled({"a": 1}),
        made.pickled(Made(Named(made.METADATA, "Metadata"), 5)),
        made.pickled(Made(Named(made.METADATA, "Metadata"), {"state_dict_metadata": 5})),
        made.metadata({"w": made.tensor((-1,), [])}, []),
        made.metadata({"w": made.tensor((4,), [made.chunk((0, 0), (4,))])}, []),
        made.metadata({"w": made.tensor(tuple(range(100)), [])}, []),
        made.metadata({}, [made.entry("w", None, "__0_0.distcp", -1, 2**80)]),
        b"\x80\x04" + b"((((((((",
        b"\x80\x04\x8c\xff",
        b"\x80\x04h\x05.",
        b"\x80\x04b.",
    ],
)
def test_nonsense_in_metadata_is_a_problem_and_never_an_error_of_ours(data: bytes) -> None:
    found = inspect_files({".metadata": data, "__0_0.distcp": b"1"}, "/ckpt/step-3")
    assert (found.step, found.complete) == (3, False) or found.tensor_count is None


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of memory is read from /proc")
@pytest.mark.parametrize("bomb", [b"]", b"N", b"(", b"}", b")\x85", b"]\x94"])
def test_a_pickle_that_only_takes_memory_is_given_up(bomb: bytes, tmp_path: Path) -> None:
    place = tmp_path / "bomb"
    place.write_bytes(b"\x80\x04" + bomb * (24_000_000 // len(bomb)))
    program = (
        "import re, sys; from cairn.formats.checkpoints.dcp_metadata import DcpMetadata, parse\n"
        "from cairn.formats.checkpoints.pickles import PickleFault\n"
        "try: parse(open(sys.argv[1], 'rb').read(), DcpMetadata())\n"
        "except PickleFault as fault: print(fault)\n"
        # Not ru_maxrss, which begins with the memory of the process that started this one.
        "print(int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1]) // 1024)"
    )
    done = subprocess.run([sys.executable, "-c", program, str(place)], capture_output=True, text=True, check=True)
    told, megabytes = done.stdout.splitlines()
    assert "more memory" in told
    assert int(megabytes) < 300


def test_a_list_that_is_named_again_and_again_costs_its_length_once() -> None:
    parts = b"\x80\x04](" + made._of(made.chunk((0,), (1,))) * 1000 + b"e\x94"
    shared = made._of(Named(made.METADATA, "TensorStorageMetadata")) + b")\x81}("
    shared += made._of("properties") + made._of(made.tensor((1,), []).state["properties"])
    shared += made._of("size") + made._of(made.size(1)) + made._of("chunks") + b"h\x00ub"
    started = time.perf_counter()
    with pytest.raises(PickleFault):
        parse(parts + b"(" + shared * 2000 + b"t.", DcpMetadata())
    assert time.perf_counter() - started < 60  # it would be hours


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("model.layers.0.attention.wq.weight", Kind.WEIGHTS),
        ("layers.0.scheduler.weight", Kind.SCHEDULER),
        ("blocks.3.mlp.scheduler.weight", Kind.WEIGHTS),
        ("decoder.layers.self_attention.linear_qkv._extra_state/shard_0_2", Kind.WEIGHTS),
        ("optimizer.state.layers.0.weight.exp_avg", Kind.OPTIMIZER),
        ("optim.param_groups.0.lr", Kind.OPTIMIZER),
        ("app.optimizer.state.weight.step", Kind.OPTIMIZER),
        ("chained_0.optimizer.state.exp_avg.decoder.weight", Kind.OPTIMIZER),
        ("lr_scheduler.last_epoch", Kind.SCHEDULER),
        ("dataloader.dp_rank_3", Kind.DATA),
        ("train_dataloader.state", Kind.DATA),
        ("rng_state/shard_0.1_1.2", Kind.RANDOM),
        ("cuda_rng_state", Kind.RANDOM),
        ("train_state.step", Kind.TRAINER),
        ("train_state.consumed_samples", Kind.COUNTER),
        ("ema.layers.0.weight", Kind.AVERAGE),
        ("embedding.word_embeddings.weight", Kind.WEIGHTS),
        ("rngthing.weight", Kind.WEIGHTS),
    ],
)
def test_a_key_belongs_to_a_piece_by_its_first_words(name: str, kind: Kind) -> None:
    assert kind_of(name) is kind


def test_ten_thousand_files_are_told_of_in_three_seconds(tmp_path: Path) -> None:
    folder = tmp_path / "step-100"
    folder.mkdir()
    ranks = 10_000
    (folder / ".metadata").write_bytes(made.sharded(["layers.0.weight"], ranks))
    for rank in range(ranks):
        with (folder / f"__{rank}_0.distcp").open("wb") as file:
            file.truncate(4096)
    # Of this process alone: other tests may be busy at the same time.
    started = time.process_time()
    found = inspect(LocalSource(folder))
    took = time.process_time() - started
    assert (found.complete, found.files, found.layout.world_size) == (True, ranks + 1, ranks)
    assert took < 3 * slowness()


def test_metadata_too_large_to_follow_is_told_not_read() -> None:
    found = inspect_files({".metadata": made.pickled(1), "__0_0.distcp": b"1"}, **{".metadata": 2**40})
    assert "at most are followed" in reasons(found)
    assert found.complete is False


def test_a_file_that_cannot_be_read_is_a_problem_of_its_own() -> None:
    files: dict[str, bytes | Unreadable] = {**files_of(FSDP), ".metadata": Unreadable("permission denied")}
    found = inspect_files(files)
    assert found.complete is False
