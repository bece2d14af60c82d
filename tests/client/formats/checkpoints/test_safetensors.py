"""safetensors, single and sharded."""

import json
import struct
from pathlib import Path

import pytest
from cairn.formats.checkpoints import Resumability, Unrecognised
from cairn.formats.checkpoints.safetensors import MAX_HEADER

from tests.client.formats.checkpoints.sources import (
    MemorySource,
    files_of,
    inspect_files,
    inspected,
    reasons,
    safetensors_bytes,
    states,
)

SHARD = "model-00001-of-00002.safetensors"
INDEX = "model.safetensors.index.json"


def test_a_model_of_transformers_is_told_from_its_header_alone() -> None:
    source = MemorySource(files_of("safetensors_single"))
    found = inspect_files(source.content)
    assert (found.format, found.parameter_count, found.dtypes) == ("safetensors", 1704, {"bf16": 1704})
    assert found.tensor_count == len(found.tensors) == 21
    shapes = {each.name: each.shape for each in found.tensors}
    assert shapes["model.layers.1.mlp.down_proj.weight"] == (8, 16)
    assert found.complete is True
    assert found.resumability is Resumability.WEIGHTS_ONLY


def test_shards_are_read_together() -> None:
    found = inspected("safetensors_sharded")
    assert (found.parameter_count, found.tensor_count, found.complete) == (1704, 21, True)
    assert {each.file for each in found.tensors} == {SHARD, "model-00002-of-00002.safetensors"}


def test_only_headers_are_read_of_a_large_file() -> None:
    data = safetensors_bytes({"w": ("F32", [1024, 1024], 4 * 1024 * 1024)})
    source = MemorySource({"model.safetensors": data})
    from cairn.formats.checkpoints import inspect

    assert inspect(source).parameter_count == 1024 * 1024
    assert source.read_bytes < 300_000


def test_a_missing_shard_makes_the_weights_absent() -> None:
    files = files_of("safetensors_sharded")
    del files[SHARD]
    found = inspect_files(files)
    assert (found.complete, found.missing) == (False, (SHARD,))
    assert states(found)["weights"] == "absent"
    assert found.resumability is Resumability.INCOMPLETE


def test_a_missing_shard_is_noticed_by_the_numbers_in_the_names_without_an_index() -> None:
    files = files_of("safetensors_sharded")
    del files[SHARD], files[INDEX]
    assert inspect_files(files).missing == (SHARD,)


@pytest.mark.parametrize("kept", [0, 5, 100, 5000])
def test_a_shard_cut_short_is_told_wherever_it_is_cut(kept: int) -> None:
    files = files_of("safetensors_sharded")
    files[SHARD] = files[SHARD][:kept]
    found = inspect_files(files)
    assert found.complete is False
    assert SHARD in reasons(found)
    assert "cut short" in reasons(found)


def test_an_index_that_disagrees_with_its_shards_is_reported() -> None:
    files = files_of("safetensors_sharded")
    index = json.loads(files[INDEX])
    first = next(iter(index["weight_map"]))
    index["weight_map"]["model.invented.weight"] = SHARD
    del index["weight_map"][first]
    found = inspect_files({**files, INDEX: json.dumps(index).encode()})
    assert "does not name 1 tensors of the shards" in reasons(found)
    assert "names 1 tensors that their shards do not hold, first model.invented.weight" in reasons(found)
    assert found.complete is False


def test_a_wrong_total_is_noted_without_spoiling_the_weights() -> None:
    files = files_of("safetensors_sharded")
    index = json.loads(files[INDEX])
    index["metadata"]["total_size"] += 1
    found = inspect_files({**files, INDEX: json.dumps(index).encode()})
    assert "total_size" in reasons(found)
    assert states(found)["weights"] == "present"


def test_an_index_alone_says_what_is_missing() -> None:
    found = inspect_files({INDEX: files_of("safetensors_sharded")[INDEX]})
    assert len(found.missing) == 2
    assert found.parameter_count is None


def test_a_header_of_two_gigabytes_is_refused_without_reading_it() -> None:
    data = struct.pack("<Q", 2 * 1024**3) + b'{"a":' + bytes(70_000)
    source = MemorySource({"model.safetensors": data}, sizes={"model.safetensors": 3 * 1024**3})
    from cairn.formats.checkpoints import inspect

    found = inspect(source)
    assert f"at most {MAX_HEADER:,}" in reasons(found)
    assert states(found)["weights"] == "absent"
    assert source.read_bytes < 300_000


@pytest.mark.parametrize(
    ("header", "told"),
    [
        (b"{" + b"[" * 50_000, "no JSON"),
        (b'{"w": 1}', "no object"),
        (b'{"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}', "do not fit"),
        (b'{"w": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', "gap"),
        (b'{"w": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', "without a sound"),
        (b'{"w": {"dtype": "F32", "shape": [true], "data_offsets": [0, 4]}}', "without a sound"),
        (b'{"w": {"dtype": "F32", "shape": [1], "data_offsets": [0]}}', "without a sound"),
        (b'{"w": {"dtype": "F32", "shape": [9e99], "data_offsets": [0, 4]}}', "without a sound"),
    ],
)
def test_a_header_that_the_library_refuses_is_refused_with_the_reason(header: bytes, told: str) -> None:
    found = inspect_files({"model.safetensors": struct.pack("<Q", len(header)) + header + bytes(8)})
    assert told in reasons(found)
    assert found.complete is False


def test_bytes_behind_the_last_tensor_are_told() -> None:
    data = safetensors_bytes({"w": ("F32", [2], 8)}) + b"\0"
    assert "behind its last tensor" in reasons(inspect_files({"model.safetensors": data}))


def test_formats_smaller_than_a_byte_are_taken_as_they_are() -> None:
    found = inspect_files({"model.safetensors": safetensors_bytes({"w": ("F4", [16], 8), "v": ("F8_E4M3", [8], 8)})})
    assert found.complete is True
    assert found.dtypes == {"f4": 16, "f8_e4m3fn": 8}


def test_a_step_in_the_metadata_comes_before_the_one_in_the_name() -> None:
    data = safetensors_bytes({"w": ("F32", [1], 4)}, step="300")
    found = inspect_files({"model.safetensors": data}, "/ckpt/step_250")
    assert (found.step, found.step_source) == (300, "__metadata__ step")
    assert found.disagreements == ("__metadata__ step says step 300, name step_250 says 250",)


def test_a_file_with_the_name_alone_is_not_recognised() -> None:
    with pytest.raises(Unrecognised, match="no known format"):
        inspect_files({"model.safetensors": b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n"})


def test_state_that_a_script_put_beside_the_weights_is_found() -> None:
    optimizer = files_of("torch_save/two_files")["optimizer.pt"]
    whole = files_of("torch_save")["step_250.pt"]
    for weights in ("safetensors_single", "bin_sharded", "lora"):
        found = inspect_files({**files_of(weights), "optimizer.pt": optimizer})
        assert states(found)["optimizer"] == "present", weights
        assert states(found)["data_position"] == "absent"
    found = inspect_files({**files_of("safetensors_single"), "training_state.pt": whole})
    assert (found.step, found.step_source) == (250, "training_state.pt iter_num")
    assert found.resumability is Resumability.EXACT


def test_state_beside_the_weights_that_cannot_be_read_is_unknown_and_not_absent() -> None:
    found = inspect_files({**files_of("safetensors_single"), "training_state.pt": b"PK\x03\x04 and no more"})
    assert (states(found)["weights"], states(found)["optimizer"]) == ("present", "unknown")
    assert found.complete is False


@pytest.mark.parametrize("path", ["optim_state.npz", "optimizer/0.npy", "rng.msgpack", "train_state.h5"])
def test_state_in_a_format_of_somebody_s_own_is_unknown_and_not_absent(path: str) -> None:
    found = inspect_files({**files_of("safetensors_single"), path: b"x" * 9})
    assert set(states(found).values()) == {"present", "unknown"}
    assert found.complete is True
    assert path in str(found.pieces.optimizer.evidence)


def test_a_published_index_tells_every_shard_that_was_left_out() -> None:
    path = Path(__file__).parents[5] / "shared" / "data" / "ckpt_layout" / "CogniDet" / INDEX
    if not path.exists():
        pytest.skip("the published index is not on this machine")
    found = inspect_files({INDEX: path.read_bytes()})
    assert found.missing == tuple(f"model-0000{number}-of-00004.safetensors" for number in (4, 1, 2, 3))


OWN_STATE = json.dumps({"step": 20, "loss": 1.5, "shard": 3}).encode()
HUB = [
    *("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
    *("added_tokens.json", "vocab.json", "merges.txt", "README.md", "LICENSE", ".gitattributes", "modeling_own.py"),
    *("preprocessor_config.json", "tokenizer.model", "training_args.bin", "all_results.json", "tf_model.h5"),
    *("flax_model.msgpack", "chat_template.jinja", "adapter_config.json", "consolidated.safetensors"),
]


@pytest.mark.parametrize("name", ["optimizer.json", "trainer_state.json", "extra.bin.zst", "state.npz", "meta.json"])
def test_a_file_of_somebodys_own_beside_the_weights_may_hold_state_and_nothing_is_called_absent(name: str) -> None:
    found = inspect_files({**files_of("safetensors_single"), name: OWN_STATE})
    assert found.format == "safetensors"
    assert states(found) == {
        "weights": "present",
        **dict.fromkeys(("optimizer", "data_position", "random_state"), "unknown"),
    }
    assert found.pieces.optimizer.evidence.startswith(name)
    assert found.complete is True


def test_what_libraries_put_beside_weights_holds_no_state() -> None:
    found = inspect_files({**files_of("safetensors_single"), **dict.fromkeys(HUB, b"{}")})
    assert found.resumability is Resumability.WEIGHTS_ONLY


def test_a_torch_file_beside_the_weights_does_not_speak_for_a_file_that_is_not_known() -> None:
    files = files_of("safetensors_single")
    files["rng.pth"] = files_of("hf_trainer/checkpoint-4")["rng_state.pth"]
    assert states(inspect_files(files))["optimizer"] == "absent"
    found = inspect_files({**files, "optimizer.json": OWN_STATE})
    assert (states(found)["optimizer"], states(found)["random_state"]) == ("unknown", "present")
