"""The readers against what the real libraries write and read today."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import Inspection, LocalSource, inspect
from cairn.formats.checkpoints.dtypes import short_of_torch

from tests.client.formats.checkpoints.sources import FIXTURES

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
Made = Callable[[str], Path]

PLACES = [
    *("safetensors_single", "safetensors_sharded", "bin_sharded", "lora", "gguf_file"),
    *("accelerate_state", "accelerate_stateful", "torch_save/two_files", "torch_save/ckpt.pt"),
    *("torch_save/step_250.pt", "torch_save/weights.pth", "torch_save/before-1.6.pt"),
    *("hf_trainer/checkpoint-2", "hf_trainer/checkpoint-4", "hf_trainer_lora/checkpoint-4"),
    *("hf_trainer_two_ranks/checkpoint-4", "lightning_ckpt/mid-epoch", "lightning_ckpt/epoch-end"),
    *("lightning_ckpt/stateful", "lightning_ckpt/weights-only", "fsdp/folders"),
]


def at(made: Made, place: str) -> Path:
    name, _, rest = place.partition("/")
    return made(name) / rest


def essence(found: Inspection) -> dict[str, Any]:
    """What does not depend on the day, the machine or the place."""
    pieces = {name: (each.state, each.position, each.evidence) for name, each in found.pieces.items()}
    shapes = sorted((each.name, each.dtype, each.shape) for each in found.tensors)
    step = (found.step, found.step_source, found.disagreements)
    numbers = (found.parameter_count, dict(found.dtypes), found.files, found.complete, found.layout)
    return {"format": found.format, "pieces": pieces, "tensors": shapes, "step": step, "numbers": numbers}


@pytest.mark.parametrize("place", PLACES)
def test_the_committed_files_are_what_the_libraries_write(made: Made, place: str) -> None:
    fresh = inspect(LocalSource(at(made, place)))
    assert fresh.problems == ()
    assert essence(fresh) == essence(inspect(LocalSource(FIXTURES / place)))


def of_module(state: dict[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (short_of_torch(str(tensor.dtype)), tuple(tensor.shape)) for name, tensor in state.items()}


@pytest.mark.parametrize("place", ["safetensors_single", "safetensors_sharded", "lora", "hf_trainer/checkpoint-4"])
def test_tensors_are_those_that_the_safetensors_library_reads(made: Made, place: str) -> None:
    from safetensors.torch import load_file

    folder = at(made, place)
    state = {name: tensor for file in folder.glob("*.safetensors") for name, tensor in load_file(file).items()}
    found = inspect(LocalSource(folder))
    assert {each.name: (each.dtype, each.shape) for each in found.tensors} == of_module(state)
    assert found.parameter_count == sum(tensor.numel() for tensor in state.values())


def test_tensors_are_those_that_torch_loads(made: Made) -> None:
    import torch

    state = {}
    for file in made("bin_sharded").glob("*.bin"):
        state |= torch.load(file, weights_only=True)
    found = inspect(LocalSource(made("bin_sharded")))
    assert {each.name: (each.dtype, each.shape) for each in found.tensors} == of_module(state)


@pytest.mark.parametrize("name", ["mid-epoch", "epoch-end", "stateful", "weights-only"])
def test_step_and_keys_are_those_that_torch_loads_from_a_lightning_file(made: Made, name: str) -> None:
    import torch

    (path,) = (made("lightning_ckpt") / name).iterdir()
    loaded = torch.load(path, weights_only=False)
    found = inspect(LocalSource(path))
    assert (found.step, found.format_version) == (loaded["global_step"], loaded["pytorch-lightning_version"])
    assert found.facts["keys"] == list(loaded)
    assert {each.name: (each.dtype, each.shape) for each in found.tensors} == of_module(loaded["state_dict"])


DTYPES = "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 float8_e4m3fn float8_e5m2 uint16"


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("name", DTYPES.split())
def test_every_dtype_and_both_forms_of_torch_are_read(tmp_path: Path, name: str, zipped: bool) -> None:
    import torch

    tensor = torch.zeros(3, 2, dtype=getattr(torch, name))
    torch.save(
        {"w": tensor, "p": torch.nn.Parameter(tensor, requires_grad=False)},
        tmp_path / "m.pt",
        _use_new_zipfile_serialization=zipped,
    )
    found = inspect(LocalSource(tmp_path / "m.pt"))
    assert found.problems == ()
    assert {(each.dtype, each.shape) for each in found.tensors} == {(short_of_torch(name), (3, 2))}


def test_a_file_that_torch_refuses_as_cut_short_is_called_so(made: Made, tmp_path: Path) -> None:
    import torch

    data = (made("torch_save") / "ckpt.pt").read_bytes()
    path = tmp_path / "ckpt.pt"
    for kept in (len(data) // 2, len(data) - 30):
        path.write_bytes(data[:kept])
        with pytest.raises(RuntimeError):
            torch.load(path)
        assert inspect(LocalSource(path)).complete is False
