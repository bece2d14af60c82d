"""Makes the small checkpoints under tests/client/fixtures/checkpoints with the real libraries.

    .venv-frameworks/bin/python tests/frameworks/make_fixtures.py [NAME ...]

They are committed, so that every reader is tested where no torch is installed. Each function makes one folder.
"""

import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}
sys.path.insert(0, str(Path(__file__).parents[2]))  # as a script it finds only what lies beside it

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

from tests.ports import held_port

FOLDER = Path(__file__).parents[1] / "client" / "fixtures" / "checkpoints"
MAKERS: dict[str, Callable[[Path], None]] = {}


def maker(make: Callable[[Path], None]) -> Callable[[Path], None]:
    MAKERS[make.__name__] = make
    return make


class Tokens(Dataset):
    """Sixteen short sequences."""

    def __len__(self) -> int:
        return 16

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(8) + index) % 32
        return {"input_ids": ids, "labels": ids}


def tiny_llama(**changes: object) -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    sizes = {"vocab_size": 32, "hidden_size": 8, "intermediate_size": 16, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 16}
    return LlamaForCausalLM(LlamaConfig(**{**sizes, **heads, **changes}))


@maker
def safetensors_single(folder: Path) -> None:
    tiny_llama(dtype="bfloat16").to(torch.bfloat16).save_pretrained(folder)


@maker
def safetensors_sharded(folder: Path) -> None:
    tiny_llama().save_pretrained(folder, max_shard_size="4KB")


def train(folder: Path, model: nn.Module, **changes: object) -> None:
    """Four steps of Trainer, saved after two and four, into `checkpoint-2` and `checkpoint-4`."""
    from transformers import Trainer, TrainingArguments

    settings: dict[str, object] = {
        "output_dir": str(folder),
        "max_steps": 4,
        "save_steps": 2,
        "logging_steps": 1,
        "report_to": [],
        "per_device_train_batch_size": 2,
        "eval_strategy": "steps",
        "eval_steps": 2,
        "use_cpu": True,
        "disable_tqdm": True,
        "metric_for_best_model": "eval_loss",
        "load_best_model_at_end": True,
        "lr_scheduler_type": "linear",
        "dataloader_pin_memory": False,
    }
    arguments = TrainingArguments(**{**settings, **changes})
    Trainer(model=model, args=arguments, train_dataset=Tokens(), eval_dataset=Tokens()).train()


@maker
def hf_trainer(folder: Path) -> None:
    train(folder, tiny_llama())


@maker
def hf_trainer_lora(folder: Path) -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(tiny_llama(), LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"]))
    train(folder, model, save_steps=4, load_best_model_at_end=False, eval_strategy="no")


@maker
def lora(folder: Path) -> None:
    from peft import LoraConfig, get_peft_model

    model = get_peft_model(tiny_llama(), LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"]))
    model.peft_config["default"].base_model_name_or_path = "acme/tiny-llama"
    model.save_pretrained(folder)


def _train_rank(rank: int, folder: str, port: int) -> None:
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    os.environ |= {**where, "RANK": str(rank), "LOCAL_RANK": str(rank)}
    train(Path(folder), tiny_llama(), ddp_backend="gloo", save_steps=4, load_best_model_at_end=False)
    torch.distributed.destroy_process_group()


@maker
def hf_trainer_two_ranks(folder: Path) -> None:
    with held_port() as port:
        torch.multiprocessing.spawn(_train_rank, (str(folder), port), nprocs=2)


def _shard_rank(rank: int, folder: str, port: int) -> None:
    """Accelerate turns FSDP on with a GPU only, so its own functions for saving are called here directly."""
    from types import SimpleNamespace

    from accelerate import FullyShardedDataParallelPlugin, PartialState
    from accelerate.utils.fsdp_utils import save_fsdp_model, save_fsdp_optimizer
    from torch.distributed.fsdp import fully_shard

    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2", "RANK": str(rank)}
    os.environ["LOCAL_RANK"] = str(rank)
    PartialState(cpu=True, backend="gloo")
    mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
    model = tiny_llama(num_hidden_layers=1)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.AdamW(model.parameters())
    ids = torch.arange(8)[None]
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    accelerator = SimpleNamespace(num_processes=2, process_index=rank)
    for use_dcp, name in ((True, "folders"), (False, "files")):
        plugin = FullyShardedDataParallelPlugin(fsdp_version=2, state_dict_type="SHARDED_STATE_DICT")
        place = str(Path(folder) / name)
        save_fsdp_model(plugin, accelerator, model, place, use_dcp=use_dcp)
        save_fsdp_optimizer(plugin, accelerator, optimizer, model, place, use_dcp=use_dcp)
    torch.distributed.destroy_process_group()


@maker
def fsdp(folder: Path) -> None:
    """The two ways in which Accelerate, and Trainer through it, save shards."""
    with held_port() as port:
        torch.multiprocessing.spawn(_shard_rank, (str(folder), port), nprocs=2)


@maker
def bin_sharded(folder: Path) -> None:
    """The older `pytorch_model-*.bin` with an index, which Accelerate still writes."""
    from accelerate import Accelerator

    Accelerator(cpu=True).save_model(tiny_llama(), folder, max_shard_size="4KB", safe_serialization=False)


def _accelerator_with(folder: Path, stateful: bool) -> None:
    from accelerate import Accelerator
    from accelerate.utils import DataLoaderConfiguration

    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.AdamW(model.parameters())
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    loader = DataLoader([torch.ones(4) * number for number in range(8)], batch_size=2, shuffle=True)
    settings = DataLoaderConfiguration(use_stateful_dataloader=stateful, use_seedable_sampler=not stateful)
    accelerator = Accelerator(cpu=True, dataloader_config=settings)
    model, optimizer, scheduler, loader = accelerator.prepare(model, optimizer, scheduler, loader)
    for number, batch in enumerate(loader):
        accelerator.backward(model(batch).sum())
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
        if number == 1:
            break
    accelerator.save_state(folder)


@maker
def accelerate_state(folder: Path) -> None:
    _accelerator_with(folder, stateful=False)


@maker
def accelerate_stateful(folder: Path) -> None:
    _accelerator_with(folder, stateful=True)


class Counting:
    """A loader that can say where it stands, as Lightning asks for."""

    def __init__(self) -> None:
        self.done = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        while self.done < 8:
            self.done += 1
            yield torch.ones(2, 4)

    def __len__(self) -> int:
        return 8

    def state_dict(self) -> dict[str, int]:
        return {"done": self.done}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.done = state["done"]


@maker
def lightning_ckpt(folder: Path) -> None:
    """In the middle of an epoch, at its end, with a loader that has a state, and weights alone."""
    import lightning
    from lightning.pytorch.callbacks import ModelCheckpoint

    class Module(lightning.LightningModule):
        def __init__(self, width: int = 2) -> None:
            super().__init__()
            self.save_hyperparameters()
            self.layer = nn.Linear(4, width)

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            loss = self.layer(batch).sum()
            self.log("loss", loss)
            return loss

        def configure_optimizers(self) -> dict[str, object]:
            optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
            return {"optimizer": optimizer, "lr_scheduler": torch.optim.lr_scheduler.ConstantLR(optimizer)}

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    rows = torch.ones(8, 4)
    for name, loader, saving, weights_only in (
        ("mid-epoch", DataLoader(rows, batch_size=2), {"every_n_train_steps": 3}, False),
        ("epoch-end", DataLoader(rows, batch_size=2), {"every_n_epochs": 1}, False),
        ("stateful", Counting(), {"every_n_train_steps": 3}, False),
        ("weights-only", DataLoader(rows, batch_size=2), {"every_n_epochs": 1}, True),
    ):
        torch.manual_seed(0)
        keep = {"save_weights_only": weights_only, "monitor": "loss", "save_top_k": 1, **saving}
        saver = ModelCheckpoint(dirpath=folder / name, filename="{epoch}-{step}", **keep)
        trainer = lightning.Trainer(max_epochs=1, max_steps=4, callbacks=[saver], **quiet)
        trainer.fit(Module(), loader)


@maker
def torch_save(folder: Path) -> None:
    """What people write by hand: one dictionary, a bare state dict, two files, the form before torch 1.6."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Embedding(16, 4), nn.Linear(4, 16, bias=False))
    model[1].weight = model[0].weight
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.arange(4)).sum().backward()
    optimizer.step()
    whole = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": 250, "best_val_loss": 1.5}
    torch.save(whole, folder / "ckpt.pt")
    torch.save({**whole, "rng": torch.get_rng_state(), "consumed_samples": 2000}, folder / "step_250.pt")
    torch.save(model.half().state_dict(), folder / "weights.pth")
    torch.save(whole, folder / "before-1.6.pt", _use_new_zipfile_serialization=False)
    both = folder / "two_files"
    both.mkdir()
    torch.save(model.state_dict(), both / "model.pt")
    torch.save(optimizer.state_dict(), both / "optimizer.pt")


@maker
def gguf_file(folder: Path) -> None:
    import numpy
    from gguf import GGMLQuantizationType, GGUFWriter, quants

    writer = GGUFWriter(folder / "tiny-q8_0.gguf", "llama")
    writer.add_name("tiny")
    writer.add_block_count(1)
    writer.add_token_list([f"token{number}" for number in range(64)])
    numbers = numpy.arange(64 * 32, dtype=numpy.float32).reshape(64, 32)
    kind = GGMLQuantizationType.Q8_0
    writer.add_tensor("token_embd.weight", quants.quantize(numbers, kind), raw_dtype=kind)
    writer.add_tensor("output_norm.weight", numpy.ones(32, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def make(name: str, folder: Path) -> Path:
    """Makes one of them below `folder`, anew."""
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MAKERS[name](target)
    for readme in target.rglob("README.md"):  # a model card's template, nothing of the checkpoint
        readme.unlink()
    return target


def main(place: Path, names: list[str]) -> None:
    """Made below the system's folder for such things first, since the files keep the path that they were made at."""
    with tempfile.TemporaryDirectory(prefix="cairn-fixtures-", dir="/tmp") as made_at:
        for name in names or MAKERS:
            made = make(name, Path(made_at))
            shutil.rmtree(place / name, ignore_errors=True)
            shutil.copytree(made, place / name)
            sizes = [path.stat().st_size for path in made.rglob("*") if path.is_file()]
            print(f"{name}: {len(sizes)} files, {sum(sizes):,} bytes, the largest {max(sizes):,}")


if __name__ == "__main__":
    main(FOLDER, sys.argv[1:])
