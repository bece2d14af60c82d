"""The readers of distributed checkpoints against what torch's own processes write and read today."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cairn.formats.checkpoints import Inspection, LocalSource, Resumability, inspect
from cairn.formats.checkpoints.dcp_metadata import DcpMetadata, parse
from cairn.formats.checkpoints.dtypes import short_of_torch

from tests.client.formats.checkpoints.sources import FIXTURES

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]
MakeOne = Callable[[str], Path]
DCP = ["dcp/fsdp2/step-20", "dcp/2d/step-5", "dcp/parts/checkpoint_3/optimizer_0"]
# Made again here; the others need megatron-core or deepspeed, see the script.
WITH_TORCH = [
    *("dcp/fsdp2/step-20", "dcp/2d/step-5", "dcp/parts/checkpoint_3", "dcp/each_rank/step-7"),
    *("megatron/zarr/iter_0000020", "megatron/legacy/parallel", "megatron/legacy/single"),
    *("deepspeed/pipeline", "deepspeed/moe"),
]
WITH_MORE = {
    "megatron/torch_dist": "megatron",
    **{f"deepspeed/{kind}": "deepspeed" for kind in ("zero1", "zero2", "zero3", "universal")},
}


@pytest.fixture(scope="module")
def make_one(tmp_path_factory: pytest.TempPathFactory) -> MakeOne:
    """A fixture's folder, made anew by the script, each once."""
    from tests.frameworks import make_distributed_fixtures as script

    done: dict[str, Path] = {}

    def make(place: str) -> Path:
        family, kind, *rest = place.split("/")
        name = f"{family}_{kind}"
        if name not in done:
            done[name] = tmp_path_factory.mktemp(name)
            script.MAKERS[name](done[name])
        return done[name].joinpath(*rest)

    return make


def essence(found: Inspection) -> dict[str, Any]:
    """What does not depend on the day, the machine or the place."""
    pieces = {name: (each.state, each.position, each.evidence) for name, each in found.pieces.items()}
    shapes = sorted((each.name, each.dtype, each.shape, each.chunks, each.piece) for each in found.tensors)
    step = (found.step, found.step_source, found.disagreements)
    numbers = (found.parameter_count, dict(found.dtypes), found.files, found.complete, found.layout, found.missing)
    return {"format": found.format, "pieces": pieces, "tensors": shapes, "step": step, "numbers": numbers}


@pytest.mark.parametrize("place", WITH_TORCH)
def test_the_committed_files_are_what_the_script_makes(make_one: MakeOne, place: str) -> None:
    fresh = inspect(LocalSource(make_one(place)))
    assert fresh.problems == ()
    assert essence(fresh) == essence(inspect(LocalSource(FIXTURES / place)))


@pytest.mark.parametrize("place", WITH_MORE)
def test_the_same_of_the_frameworks_own_code_where_it_is_installed(make_one: MakeOne, place: str) -> None:
    if importlib.util.find_spec(WITH_MORE[place]) is None:
        pytest.skip(f"{WITH_MORE[place]} is not installed")
    fresh = inspect(LocalSource(make_one(place)))
    assert fresh.problems == ()
    assert essence(fresh)["pieces"] == essence(inspect(LocalSource(FIXTURES / place)))["pieces"]


@pytest.mark.parametrize("place", DCP)
def test_tensors_parts_and_files_are_those_that_torch_reads_from_the_metadata(place: str, make_one: MakeOne) -> None:
    from torch.distributed.checkpoint import FileSystemReader
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    for folder in (make_one(place), FIXTURES / place):
        theirs = FileSystemReader(folder).read_metadata()
        ours = DcpMetadata()
        parse((folder / ".metadata").read_bytes(), ours)
        tensors = {n: e for n, e in theirs.state_dict_metadata.items() if isinstance(e, TensorStorageMetadata)}
        assert {name: (each.dtype, each.shape, each.chunks) for name, each in ours.tensors.items()} == {
            name: (short_of_torch(str(each.properties.dtype)), tuple(each.size), len(each.chunks))
            for name, each in tensors.items()
        }
        assert set(ours.objects) == theirs.state_dict_metadata.keys() - tensors.keys()
        ends: dict[str, int] = {}
        for info in theirs.storage_data.values():
            ends[info.relative_path] = max(ends.get(info.relative_path, 0), info.offset + info.length)
        assert {path: need.end for path, need in ours.files.items()} == ends
        assert ours.save_id == theirs.storage_meta.save_id


def test_counters_are_those_that_torch_loads() -> None:
    import torch
    from torch.distributed import checkpoint as dcp

    folder = FIXTURES / "dcp/fsdp2/step-20"
    state = {
        "train_state": {"step": torch.zeros((), dtype=torch.int32), "ntokens_seen": torch.zeros((), dtype=torch.int64)}
    }
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    counters = inspect(LocalSource(folder)).facts["counters"]
    assert counters["train_state.step"] == state["train_state"]["step"].item()
    assert counters["train_state.ntokens_seen"] == state["train_state"]["ntokens_seen"].item()


@pytest.mark.parametrize("settings", [{"thread_count": 3}, {"single_file_per_rank": False}, {"sync_files": False}])
def test_every_way_of_the_writer_is_read(settings: dict[str, Any], tmp_path: Path) -> None:
    import torch
    from torch.distributed import checkpoint as dcp

    state = {"model": {f"layer{n}": torch.zeros(4, n + 1) for n in range(5)}, "step": 12, "note": "text"}
    dcp.save(state, storage_writer=dcp.FileSystemWriter(tmp_path, **settings), no_dist=True)
    found = inspect(LocalSource(tmp_path))
    assert (found.complete, found.problems, found.tensor_count, found.parameter_count) == (True, (), 5, 60)
    assert (found.step, found.step_source) == (12, ".metadata step")


def test_every_dtype_that_torch_can_store_is_told(tmp_path: Path) -> None:
    import torch
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.api import CheckpointException

    dtypes = {name for name in dir(torch) if isinstance(getattr(torch, name), torch.dtype)}
    stored = []
    for name in sorted(dtypes):
        try:
            tensor = torch.empty(2, dtype=getattr(torch, name))
            dcp.save({"w": tensor}, checkpoint_id=tmp_path / name, no_dist=True)
        except (RuntimeError, TypeError, NotImplementedError, CheckpointException):
            continue
        stored.append(name)
        found = inspect(LocalSource(tmp_path / name))
        assert [each.dtype for each in found.tensors] == [short_of_torch(str(getattr(torch, name)))]
        assert found.complete is True
    assert len(stored) > 15


def test_an_asynchronous_save_ends_like_any_other(tmp_path: Path) -> None:
    import torch
    import torch.distributed as dist
    from torch.distributed import checkpoint as dcp

    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        dcp.async_save({"model": {"w": torch.zeros(4)}}, checkpoint_id=tmp_path / "step-3").result()
    finally:
        dist.destroy_process_group()
    found = inspect(LocalSource(tmp_path / "step-3"))
    assert (found.complete, found.layout.world_size, found.resumability) == (True, 1, Resumability.WEIGHTS_ONLY)


def test_a_hostile_metadata_runs_under_pickle_and_not_here(tmp_path: Path) -> None:
    """So that the test of refusal is about something that would really have run."""
    import pickle

    from cairn.formats.checkpoints.pickles import UnsafePickle

    class Evil:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "ran",)

    data = pickle.dumps(Evil())
    (tmp_path / ".metadata").write_bytes(data)
    with pytest.raises(UnsafePickle):
        inspect(LocalSource(tmp_path))
    assert not (tmp_path / "ran").exists()
    pickle.loads(data)
    assert (tmp_path / "ran").exists()
