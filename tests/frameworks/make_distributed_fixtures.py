"""Makes the small distributed checkpoints under tests/client/fixtures/checkpoints/{dcp,megatron,deepspeed}.

    .venv-frameworks/bin/python tests/frameworks/make_distributed_fixtures.py [NAME ...]

They are committed, so that every reader is tested where no torch is installed. Who wrote the bytes:

    dcp_*                   torch.distributed.checkpoint itself, several processes on gloo
    megatron_torch_dist     megatron-core's own dist_checkpointing, 4 processes; the tensors' names, `args` and the
                            loader's files as its documentation has them
    megatron_zarr           as documented: plain files in the layout of zarr 2 (the backend is gone since core 0.10)
    megatron_legacy         as documented: torch.save per model-parallel rank
    deepspeed_zero*         DeepSpeed's own engine on CPU, 2 processes; deepspeed_universal by its own converter
    deepspeed_pipeline, deepspeed_moe    as documented: torch.save with the names of its engine

megatron-core and deepspeed are not in the environment of the framework tests: put them beside (`pip install
--no-deps megatron-core deepspeed hjson ninja py-cpuinfo msgpack einops psutil`), else their folders are left alone.
"""

import argparse
import importlib.util
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ |= {"CUDA_VISIBLE_DEVICES": "", "DS_ACCELERATOR": "cpu", "PYTHONWARNINGS": "ignore"}

import torch
import torch.distributed as dist
from torch import nn

FOLDER = Path(__file__).parents[1] / "client" / "fixtures" / "checkpoints"
MAKERS: dict[str, Callable[[Path], None]] = {}
STEP = 20


def maker(make: Callable[[Path], None]) -> Callable[[Path], None]:
    MAKERS[make.__name__] = make
    return make


class Tiny(nn.Module):
    """Two layers; small enough that a file of it has a few kilobytes."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Linear(4, 8, bias=False)
        self.head = nn.Linear(8, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.embed(x)))


def in_processes(work: Callable[..., None], world_size: int, *args: Any) -> None:
    """Runs `work(rank, world_size, *args)` in processes that talk over gloo on the loopback."""
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        torch.multiprocessing.spawn(_process, (work, world_size, str(store), args), nprocs=world_size)


def _process(rank: int, work: Callable[..., None], world_size: int, store: str, args: tuple[Any, ...]) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(world_size)}
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world_size)
    torch.manual_seed(0)
    work(rank, world_size, *args)
    dist.barrier()
    dist.destroy_process_group()


class Loader:
    """A stateful loader: one state a data-parallel rank, as torchtitan keeps it."""

    def __init__(self, rank: int, world_size: int) -> None:
        self.rank, self.world_size = rank, world_size

    def state_dict(self) -> dict[str, Any]:
        state = pickle.dumps({"sample_index": 40 + self.rank, "token_buffer": [1, 2, 3]})
        return {f"dp_rank_{self.rank}": state, "world_size": self.world_size}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise AssertionError("fixtures are only written")


class TrainState:
    def state_dict(self) -> dict[str, Any]:
        return {"step": torch.tensor(STEP, dtype=torch.int32), "ntokens_seen": torch.tensor(2**33, dtype=torch.int64)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise AssertionError("fixtures are only written")


def trained(rank: int, mesh: Any) -> dict[str, Any]:
    """FSDP2 over the mesh, one step of AdamW; model, optimizer and scheduler in one state with global names."""
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict
    from torch.distributed.fsdp import fully_shard

    model = Tiny()
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    model(torch.randn(2, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
    options = StateDictOptions(flatten_optimizer_state_dict=True)
    weights, moments = get_state_dict(model, optimizer, options=options)
    return {**weights, "optimizer": moments, "lr_scheduler": {"last_epoch": scheduler.last_epoch}}


def _save_fsdp2(rank: int, world_size: int, folder: str) -> None:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh

    state = trained(rank, init_device_mesh("cpu", (world_size,)))
    state |= {"dataloader": Loader(rank, world_size), "train_state": TrainState()}
    dcp.save(state, checkpoint_id=folder)


@maker
def dcp_fsdp2(folder: Path) -> None:
    """As torchtitan composes it: weights, optimizer, scheduler, loader, train state; FSDP2 on 4 ranks."""
    in_processes(_save_fsdp2, 4, str(folder / f"step-{STEP}"))


def _save_2d(rank: int, world_size: int, folder: str) -> None:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    grid = distribute_tensor(torch.zeros(8, 4, dtype=torch.bfloat16), mesh, [Shard(0), Shard(1)])
    plain = torch.zeros(6)
    dcp.save({"model": {"grid": grid, "plain": plain}}, checkpoint_id=folder)


@maker
def dcp_2d(folder: Path) -> None:
    """Weights alone, cut in two dimensions."""
    in_processes(_save_2d, 4, str(folder / "step-5"))


def _save_parts(rank: int, world_size: int, folder: str) -> None:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh

    state = trained(rank, init_device_mesh("cpu", (world_size,)))
    optimizer = state.pop("optimizer")
    state.pop("lr_scheduler")
    dcp.save({"model": state}, checkpoint_id=f"{folder}/pytorch_model_fsdp_0")
    dcp.save({"optimizer": optimizer}, checkpoint_id=f"{folder}/optimizer_0")


@maker
def dcp_parts(folder: Path) -> None:
    """Model and optimizer in folders of their own, as accelerate keeps them."""
    in_processes(_save_parts, 2, str(folder / "checkpoint_3"))


def _save_each(rank: int, world_size: int, folder: str) -> None:
    from torch.distributed import checkpoint as dcp

    # Each rank has keys of its own, since without collectives nobody takes out what is there twice.
    dcp.save({f"rank{rank}": {"weight": torch.zeros(4)}}, checkpoint_id=folder, use_collectives=False)


@maker
def dcp_each_rank(folder: Path) -> None:
    """Metadata that every rank wrote for itself."""
    in_processes(_save_each, 2, str(folder / "step-7"))


def megatron_args(**changes: Any) -> argparse.Namespace:
    """The arguments that Megatron keeps, shortened; values of all their kinds."""
    layout = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 2, "context_parallel_size": 1}
    ranks = {"world_size": 4, "data_parallel_size": 1, "expert_model_parallel_size": 1}
    data = {"data_path": ["0.7", "web", "0.3", "code"], "seed": 1234, "split": "99,1,0", "seq_length": 16}
    batch = {"global_batch_size": 8, "micro_batch_size": 2, "consumed_train_samples": 160, "consumed_valid_samples": 16}
    model = {"num_layers": 2, "hidden_size": 8, "params_dtype": torch.bfloat16, "optimizer": "adam", "lr": 1e-4}
    flags = {"use_distributed_optimizer": True, "no_save_optim": None, "no_save_rng": None, "iteration": 0}
    return argparse.Namespace(**{**layout, **ranks, **data, **batch, **model, **flags, **changes})


def random_states() -> list[dict[str, Any]]:
    states = {"random_rng_state": random.Random(0).getstate()[1][:4], "torch_rng_state": torch.get_rng_state()[:64]}
    return [{**states, "rng_tracker_states": {"model-parallel-rng": torch.zeros(4, dtype=torch.uint8)}}]


def _save_mcore(rank: int, world_size: int, folder: str) -> None:
    # megatron-core asks CUDA for the device of its collectives; the tensors themselves may be on the CPU.
    torch.cuda.synchronize = lambda *args: None
    torch.cuda.current_device = lambda: "cpu"
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing import ShardedTensor
    from megatron.core.dist_checkpointing.mapping import ShardedObject

    tp, pp = rank % 2, rank // 2
    weight = torch.zeros(4, 4)

    def part(key: str, tensor: torch.Tensor) -> Any:
        return ShardedTensor.from_rank_offsets(key, tensor, (0, pp, 2), (1, tp, 2))

    key = "decoder.layers.mlp.linear_fc1.weight"
    state = {
        "args": megatron_args(),
        "checkpoint_version": 3.0,
        "iteration": STEP,
        "model": {"weight": part(key, weight.bfloat16())},
        "optimizer": {
            "optimizer": {"param_groups": [{"lr": 1e-4, "step": STEP}]},
            "param_state": {
                n: part(f"optimizer.state.{n}.{key}", weight) for n in ("exp_avg", "exp_avg_sq", "fp32_param")
            },
            "param_state_sharding_type": "fully_reshardable",
        },
        "opt_param_scheduler": {"max_lr": 1e-4, "num_steps": 160},
        "rng_state": ShardedObject("rng_state", random_states(), (2, 2), (pp, tp)),
        "num_floating_point_operations_so_far": 1.5e15,
    }
    Path(folder).mkdir(parents=True, exist_ok=True)
    dist.barrier()
    dist_checkpointing.save(state, folder, content_metadata={"distrib_optim_sharding_type": "fully_reshardable"})


@maker
def megatron_torch_dist(folder: Path) -> None:
    """TP 2, PP 2; the run's tracker beside it, and an older checkpoint of which only the scheduler's part is left."""
    if importlib.util.find_spec("megatron") is None:
        raise SkipIt("megatron-core is not installed")
    in_processes(_save_mcore, 4, str(folder / f"iter_{STEP:07d}"))
    (folder / "latest_checkpointed_iteration.txt").write_text(str(STEP))


@maker
def megatron_zarr(folder: Path) -> None:
    """TP 2, PP 1. bfloat16 under its own name, a scalar, an object a rank."""
    place = folder / f"iter_{STEP:07d}"
    key = "model.decoder.layers.mlp.linear_fc1.weight"
    _zarr_array(place / key, (8, 4), (4, 4), "bfloat16", 2)
    for name in ("exp_avg", "exp_avg_sq", "fp32_param"):
        _zarr_array(place / f"optimizer.state.{name}.{key}", (8, 4), (4, 4), "<f4", 4)
    _zarr_array(place / "optimizer.state.step", (), (), "<i8", 8)
    (place / "rng_state").mkdir()
    for rank in range(2):
        torch.save(random_states(), place / "rng_state" / f"shard_0.{rank}_1.2.pt")
    changes = {"tensor_model_parallel_size": 2, "pipeline_model_parallel_size": 1, "world_size": 2}
    optimizer = {
        "optimizer": {"param_groups": [{"lr": 1e-4}]},
        "param_state_sharding_type": "fully_sharded_model_space",
    }
    common = {"args": megatron_args(**changes), "checkpoint_version": 3.0, "iteration": STEP, "optimizer": optimizer}
    torch.save(common | {"opt_param_scheduler": {"num_steps": 160}}, place / "common.pt")
    backend = {"sharded_backend": "zarr", "sharded_backend_version": 1}
    (place / "metadata.json").write_text(json.dumps(backend | {"common_backend": "torch", "common_backend_version": 1}))


def _zarr_array(place: Path, shape: tuple[int, ...], chunks: tuple[int, ...], dtype: str, width: int) -> None:
    place.mkdir(parents=True)
    said = {
        "chunks": list(chunks),
        "compressor": None,
        "dtype": dtype,
        "fill_value": None,
        "filters": None,
        "order": "C",
    }
    (place / ".zarray").write_text(json.dumps({**said, "shape": list(shape), "zarr_format": 2}))
    if not shape:
        (place / "0").write_bytes(bytes(width))
        return
    for row in range(shape[0] // chunks[0]):
        (place / f"{row}.0").write_bytes(bytes(width * chunks[0] * chunks[1]))


@maker
def megatron_legacy(folder: Path) -> None:
    """TP 2, PP 2 with the distributed optimizer; beside it one without parallelism, which holds all in one file."""
    for tp in range(2):
        for pp in range(2):
            place = folder / "parallel" / f"iter_{STEP:07d}" / f"mp_rank_{tp:02d}_{pp:03d}"
            place.mkdir(parents=True)
            torch.save(_rank_state(megatron_args(), {"optimizer": {"param_groups": []}}), place / "model_optim_rng.pt")
            torch.save(
                {0: {torch.float32: {"param": torch.zeros(8), "exp_avg": torch.zeros(8)}}}, place / "distrib_optim.pt"
            )
    place = folder / "single" / f"iter_{STEP:07d}" / "mp_rank_00"
    place.mkdir(parents=True)
    single = {"tensor_model_parallel_size": 1, "pipeline_model_parallel_size": 1, "world_size": 1}
    args = megatron_args(**single, use_distributed_optimizer=False)
    moments = {"optimizer": {"state": {0: {"exp_avg": torch.zeros(8, 8)}}, "param_groups": [{"lr": 1e-4}]}}
    torch.save(_rank_state(args, moments), place / "model_optim_rng.pt")
    for part in ("parallel", "single"):
        (folder / part / "latest_checkpointed_iteration.txt").write_text(str(STEP))


def _rank_state(args: argparse.Namespace, optimizer: dict[str, Any]) -> dict[str, Any]:
    layers = {"layers.0.mlp.weight": torch.zeros(8, 8, dtype=torch.bfloat16), "final_norm.weight": torch.zeros(8)}
    model = {"language_model": {"encoder": layers}}
    state = {"args": args, "checkpoint_version": 3.0, "iteration": STEP, "model": model, "optimizer": optimizer}
    return {**state, "opt_param_scheduler": {"num_steps": 160}, "rng_state": random_states()}


def _save_deepspeed(rank: int, world_size: int, folder: str, stage: int, bf16: bool) -> None:
    import deepspeed

    deepspeed.init_distributed("gloo")
    model = Tiny()
    config = {
        "train_micro_batch_size_per_gpu": 2,
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
        "scheduler": {"type": "WarmupLR", "params": {}},
        "zero_optimization": {"stage": stage},
        "zero_allow_untested_optimizer": True,
        "bf16": {"enabled": bf16},
    }
    engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
    for _ in range(3):
        loss = engine(torch.randn(2, 4, dtype=torch.bfloat16 if bf16 else torch.float32)).float().sum()
        engine.backward(loss)
        engine.step()
    engine.save_checkpoint(folder, client_state={"epoch": 1, "torch_rng_state": torch.get_rng_state()[:64]})


def _deepspeed(folder: Path, stage: int, bf16: bool) -> None:
    if importlib.util.find_spec("deepspeed") is None:
        raise SkipIt("deepspeed is not installed")
    in_processes(_save_deepspeed, 2, str(folder), stage, bf16)
    for script in folder.glob("zero_to_*.py"):  # DeepSpeed's own code; its presence is not asked for
        script.unlink()


@maker
def deepspeed_zero1(folder: Path) -> None:
    _deepspeed(folder, 1, True)


@maker
def deepspeed_zero2(folder: Path) -> None:
    _deepspeed(folder, 2, False)


@maker
def deepspeed_zero3(folder: Path) -> None:
    _deepspeed(folder, 3, True)


@maker
def deepspeed_universal(folder: Path) -> None:
    """Converted from ZeRO 1 by DeepSpeed's own converter."""
    with tempfile.TemporaryDirectory() as scratch:
        _deepspeed(Path(scratch) / "native", 1, True)
        convert = [sys.executable, "-m", "deepspeed.checkpoint.ds_to_universal", "--inject_missing_state"]
        convert += ["--input_folder", f"{scratch}/native/global_step3"]
        subprocess.run([*convert, "--output_folder", str(folder / "global_step3_universal")], check=True)


def _engine_state(**changes: Any) -> dict[str, Any]:
    config = {"zero_optimization": {"stage": 1}, "train_micro_batch_size_per_gpu": 2}
    counts = {"global_steps": STEP, "global_samples": 160, "skipped_steps": 1}
    own = {"module": None, "optimizer": None, "lr_scheduler": {"last": 1}, "ds_config": config, "ds_version": "0.14.0"}
    return {**own, **counts, "param_shapes": None, "buffer_names": [], **changes}


@maker
def deepspeed_pipeline(folder: Path) -> None:
    """PP 2, TP 2, DP 2, as Megatron-DeepSpeed: layers in files of their own, arguments in the client state."""
    place = folder / f"global_step{STEP}"
    place.mkdir(parents=True)
    for layer in (1, 3, 4):
        for tp in range(2):
            torch.save({"weight": torch.zeros(4)}, place / f"layer_{layer:02d}-model_{tp:02d}-model_states.pt")
    rng = {"rng_tracker_states": {"model-parallel-rng": torch.zeros(4)}, "torch_rng_state": torch.zeros(4)}
    args = megatron_args(data_parallel_size=2, world_size=8)
    for mp in range(4):
        state = _engine_state(dp_world_size=2, mp_world_size=4, iteration=STEP, args=args, **rng)
        torch.save(state, place / f"mp_rank_{mp:02d}_model_states.pt")
        for dp in range(2):
            optim = {"zero_stage": 1, "partition_count": 2, "single_partition_of_fp32_groups": [torch.zeros(4)]}
            name = f"bf16_zero_pp_rank_{dp}_mp_rank_{mp:02d}_optim_states.pt"
            torch.save({"optimizer_state_dict": optim, "ds_version": "0.14.0"}, place / name)
    (folder / "latest").write_text(f"global_step{STEP}")


@maker
def deepspeed_moe(folder: Path) -> None:
    """Two experts of one layer over EP 2: their weights and their optimizer states in files of their own."""
    place = folder / f"global_step{STEP}"
    place.mkdir(parents=True)
    module = {"embed.weight": torch.zeros(4, 4)}
    state = _engine_state(
        module=module, dp_world_size=2, mp_world_size=1, num_experts=[2], data_sampler={"consumed": 160}
    )
    torch.save(state, place / "mp_rank_00_model_states.pt")
    for expert in range(2):
        torch.save({"weight": torch.zeros(4)}, place / f"layer_0_expert_{expert}_mp_rank_00_model_states.pt")
        torch.save({"optimizer": {"state": {}}}, place / f"expp_rank_{expert}_mp_rank_00_optim_states.pt")
    (folder / "latest").write_text(f"global_step{STEP}")


class SkipIt(Exception):
    pass


def main(names: list[str]) -> None:
    for name in names or MAKERS:
        family, _, kind = name.partition("_")
        folder = FOLDER / family / kind
        with tempfile.TemporaryDirectory() as scratch:
            made = Path(scratch) / kind
            made.mkdir()
            try:
                MAKERS[name](made)
            except SkipIt as reason:
                print(f"{name}: {reason}, left as it is")
                continue
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(made, folder)
        print(f"{name}: {sum(each.stat().st_size for each in folder.rglob('*') if each.is_file()):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
