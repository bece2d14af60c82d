"""GGUF files and adapters: weights alone."""

import struct

import pytest
from cairn.formats.checkpoints import Resumability, Unrecognised

from tests.client.formats.checkpoints.sources import files_of, inspect_files, inspected, reasons, states

GGUF = files_of("gguf_file")["tiny-q8_0.gguf"]


def test_a_gguf_file_tells_its_tensors_and_their_quantisation() -> None:
    found = inspected("gguf_file")
    assert (found.format, found.format_version, found.parameter_count) == ("gguf", "3", 2080)
    assert found.dtypes == {"q8_0": 2048, "f32": 32}
    assert {each.name: each.shape for each in found.tensors}["token_embd.weight"] == (64, 32)
    assert found.facts["general.architecture"] == "llama"
    assert (found.complete, found.resumability) == (True, Resumability.WEIGHTS_ONLY)


@pytest.mark.parametrize("kept", [10, 100, 1200, len(GGUF) - 200])
def test_a_gguf_file_cut_short_is_told_wherever_it_is_cut(kept: int) -> None:
    found = inspect_files({"tiny.gguf": GGUF[:kept]})
    assert found.complete is False
    assert "cut short" in reasons(found)


def test_a_gguf_file_that_announces_more_than_there_can_be_is_refused() -> None:
    for count, told in ((2**62, "more than are read"), (50_000, "cut short")):
        data = b"GGUF" + struct.pack("<IQQ", 3, count, 0)
        assert told in reasons(inspect_files({"bomb.gguf": data + bytes(100)}))
    key = struct.pack("<Q", 1) + b"k" + struct.pack("<IIQ", 9, 8, 2**40)
    data = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key
    assert "more than the file has bytes" in reasons(inspect_files({"bomb.gguf": data}))


def test_a_split_gguf_misses_its_part() -> None:
    found = inspect_files({"tiny-00001-of-00002.gguf": GGUF})
    assert found.missing == ("tiny-00002-of-00002.gguf",)


def test_variants_beside_each_other_are_not_added_up() -> None:
    found = inspect_files({"tiny-q4.gguf": GGUF, "tiny-q8.gguf": GGUF + bytes(64)})
    assert found.parameter_count == 2080
    assert found.facts["other_files"] == ["tiny-q4.gguf"]


def test_an_adapter_is_weights_only_and_names_its_base() -> None:
    found = inspected("lora")
    assert (found.format, found.parameter_count, found.resumability) == ("lora", 112, Resumability.WEIGHTS_ONLY)
    assert found.pieces.weights.evidence.endswith("of an adapter of acme/tiny-llama")
    assert found.facts["target_modules"] == ["q_proj", "v_proj"]


def test_an_adapter_without_its_weights_is_incomplete() -> None:
    files = files_of("lora")
    del files["adapter_model.safetensors"]
    found = inspect_files(files)
    assert (found.missing, states(found)["weights"]) == (("adapter_model.safetensors",), "absent")


def test_an_adapter_config_of_something_else_is_not_an_adapter() -> None:
    with pytest.raises(Unrecognised):
        inspect_files({"adapter_config.json": b'{"driver": "jdbc"}'})
