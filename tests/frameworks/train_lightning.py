"""A training with the real Lightning, in a process that the test may lose: arguments are a JSON object."""

import json
import os
import sys
from typing import Any

os.environ |= {"CUDA_VISIBLE_DEVICES": ""}

import lightning
import torch
from cairn.callbacks.lightning import CairnCallback
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader

from tests.frameworks.dying import die


class Tiny(lightning.LightningModule):
    def __init__(self, width: int = 2) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.layer = nn.Linear(width, 1)

    def training_step(self, batch: torch.Tensor, index: int) -> torch.Tensor:
        loss = self.layer(batch).square().mean()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: torch.Tensor, index: int) -> None:
        self.log("val_loss", self.layer(batch).square().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=0.01)


class DieAt(lightning.Callback):
    def __init__(self, step: int) -> None:
        self.step = step

    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, index: int) -> None:
        if trainer.global_step == self.step:
            die()


def main(asked: dict[str, Any]) -> None:
    folder = asked["folder"]
    every = ModelCheckpoint(folder, filename="every-{step}", every_n_train_steps=2, save_top_k=-1, save_last=True)
    best = ModelCheckpoint(folder, filename="best-{step}", monitor="val_loss", save_top_k=1)
    callbacks = [CairnCallback("llm", "tiny"), every, best, *([DieAt(asked["die_at"])] if "die_at" in asked else [])]
    trainer = lightning.Trainer(
        max_steps=asked["steps"],
        accelerator="cpu",
        logger=False,
        log_every_n_steps=1,
        callbacks=callbacks,
        default_root_dir=folder,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    loader = DataLoader(torch.ones(8, 2), batch_size=2)
    trainer.fit(Tiny(), loader, loader, ckpt_path=asked.get("resume"), weights_only=False)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
