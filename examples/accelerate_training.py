"""Accelerate: `accelerator.save_state` writes the checkpoint, its main process records it.

accelerate launch accelerate_training.py out
"""

import argparse
from pathlib import Path

import cairn
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epochs", type=int, default=2)
    args = parser.parse_args()

    accelerator = Accelerator(cpu=True)
    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    rows = torch.randn(64, 8)
    loader = DataLoader(TensorDataset(rows, rows.sum(1, keepdim=True)), batch_size=8)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    step = 0
    # On every other process this is a recorder that records nothing.
    with cairn.start("llm", "accelerated", config=vars(args), rank=accelerator.process_index) as run:
        for epoch in range(args.epochs):
            for inputs, wanted in loader:
                loss = (model(inputs) - wanted).square().mean()
                optimizer.zero_grad()
                accelerator.backward(loss)
                optimizer.step()
                step += 1
                run.log(step, loss=loss)
            run.saving(step)
            path = args.folder / f"step_{step}"
            accelerator.save_state(str(path))
            run.saved(path, step=step, epoch=epoch + 1, loss=loss)


if __name__ == "__main__":
    main()
