"""A plain PyTorch loop that records its checkpoints, and goes on from the newest one where there is one.

python plain_pytorch.py out                                # begins
checkpoint="$(cairn resume --run llm/plain)" || exit       # goes on
python plain_pytorch.py out --resume "$checkpoint"
"""

import argparse
from pathlib import Path

import cairn
import torch
from torch import nn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--resume", type=Path)
    args = parser.parse_args()

    torch.manual_seed(0)
    model = nn.Linear(8, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=args.steps)
    first = 0
    if args.resume:
        state = torch.load(args.resume, weights_only=False)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["lr_scheduler"])
        torch.set_rng_state(state["rng_state"])
        first = state["step"]

    run = cairn.start(
        "llm", "plain", config=vars(args), data="squares", resumed_from={"step": first} if first else None
    )
    with run:
        if first:
            pieces = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "restored")
            run.resume_receipt(step=first, pieces=pieces)
        for step in range(first + 1, args.steps + 1):
            batch = torch.randn(16, 8)
            loss = (model(batch) - batch.square().sum(1, keepdim=True)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            scheduler.step()
            run.log(step, loss=loss, lr=scheduler.get_last_lr()[0])
            if step % 10 == 0:
                run.saving(step)
                path = args.folder / f"step-{step}.pt"
                path.parent.mkdir(parents=True, exist_ok=True)
                state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
                state |= {"lr_scheduler": scheduler.state_dict(), "rng_state": torch.get_rng_state(), "step": step}
                torch.save({**state, "dataloader": {"consumed_samples": step * 16}}, path)
                run.saved(path, step=step, loss=loss, cursor={"consumed_samples": step * 16})


if __name__ == "__main__":
    main()
