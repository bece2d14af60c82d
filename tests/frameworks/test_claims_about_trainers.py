"""What the readers say about going on is tried on the trainers themselves."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.frameworks, pytest.mark.filterwarnings("default")]


def resume(checkpoint: Path, folder: Path) -> tuple[float, list[list[int]]]:
    """Goes on for one step; the optimizer's own count of steps afterwards, and the first rows of its batches."""
    from transformers import Trainer, TrainingArguments

    from tests.frameworks.make_fixtures import Tokens, tiny_llama

    seen: list[list[int]] = []

    class Watching(Trainer):
        def training_step(self, model: Any, inputs: Any, *rest: Any, **more: Any) -> Any:
            seen.append(inputs["input_ids"][:, 0].tolist())
            return super().training_step(model, inputs, *rest, **more)

    quiet = {"report_to": [], "disable_tqdm": True, "save_strategy": "no", "use_cpu": True}
    settings = TrainingArguments(
        str(folder), max_steps=5, per_device_train_batch_size=2, dataloader_pin_memory=False, **quiet
    )
    trainer = Watching(model=tiny_llama(), args=settings, train_dataset=Tokens())
    trainer.train(resume_from_checkpoint=str(checkpoint))
    counts = {float(state["step"]) for state in trainer.optimizer.state.values()}
    assert len(counts) == 1
    return counts.pop(), seen


def test_trainer_goes_on_with_its_optimizer_and_skips_the_batches_it_has_seen(made: Any, tmp_path: Path) -> None:
    steps, batches = resume(made("hf_trainer") / "checkpoint-4", tmp_path / "out")
    assert steps == 5
    assert len(batches) == 1


def test_trainer_loads_no_optimizer_where_the_scheduler_is_missing(made: Any, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint-4"
    shutil.copytree(made("hf_trainer") / "checkpoint-4", folder)
    (folder / "scheduler.pt").unlink()
    steps, _ = resume(folder, tmp_path / "out")
    assert steps == 1  # the moments began anew


@pytest.mark.parametrize(("name", "repeats"), [("mid-epoch", True), ("stateful", False)])
def test_lightning_repeats_data_in_the_middle_of_an_epoch_without_a_loader_state(
    tmp_path: Path, name: str, repeats: bool
) -> None:
    import lightning
    import torch
    from lightning.pytorch.callbacks import ModelCheckpoint
    from torch import nn
    from torch.utils.data import DataLoader

    seen: list[float] = []

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
            seen.append(float(batch.flatten()[0]))
            return self.layer(batch.view(-1, 1)).sum()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=1e-3)

    class Stateful:
        def __init__(self) -> None:
            self.done = 0

        def __iter__(self) -> Any:
            while self.done < 8:
                self.done += 1
                yield torch.tensor([float(self.done - 1)])

        def __len__(self) -> int:
            return 8

        def state_dict(self) -> dict[str, int]:
            return {"done": self.done}

        def load_state_dict(self, state: dict[str, int]) -> None:
            self.done = state["done"]

    def loader() -> Any:
        return Stateful() if name == "stateful" else DataLoader(torch.arange(8.0), batch_size=1)

    quiet: dict[str, Any] = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}
    quiet["default_root_dir"] = tmp_path / "lightning"
    saver = ModelCheckpoint(dirpath=tmp_path, filename="at", every_n_train_steps=3)
    lightning.Trainer(max_steps=3, accelerator="cpu", callbacks=[saver], **quiet).fit(Module(), loader())
    assert seen == [0.0, 1.0, 2.0]
    lightning.Trainer(max_steps=4, accelerator="cpu", **quiet).fit(
        Module(), loader(), ckpt_path=str(tmp_path / "at.ckpt"), weights_only=False
    )
    assert seen[3] == (0.0 if repeats else 3.0)


SHARDED = """
import sys, torch, torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from cairn.capture.parallel import layout
dist.init_process_group("gloo", store=dist.FileStore(sys.argv[1], 1), rank=0, world_size=1)
model = torch.nn.Linear(4, 4)
before = layout()
model = fully_shard(model)
print(before, layout(), sep="\\n")
"""


def test_a_model_that_fsdp_shards_is_told_by_torch_itself(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", SHARDED, str(tmp_path / "store")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    said = ["{'world_size': 1}", str({"world_size": 1, "sharding": "fsdp2", "dp": 1})]
    assert done.stdout.splitlines() == said, done.stderr
