"""A training that logs with the real wandb library, offline: `python train.py STEPS HOW`, in a folder of its own.

HOW is `well` (finishes), `badly` (exit code 3), `killed` (SIGKILL for it and its helper), or `fixture`: without
anything of this machine, as `run-fixture.wandb` beside this file was written.
"""

import math
import os
import signal
import sys
import time
from pathlib import Path

os.environ |= {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DATA_DIR": str(Path("staging").resolve())}
os.environ["WANDB__SERVICE_WAIT"] = "300"  # for its helper, which takes its time on a busy machine

import wandb


def checkpoint(step: int) -> Path:
    folder = Path(f"checkpoint-{step}")
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(b"weights" * 100)
    return folder.resolve()


def log_artifacts(run: "wandb.Run", step: int) -> None:
    if step == 40:
        by_reference = wandb.Artifact("model-tiny", type="model", metadata={"loss": 0.5})
        by_reference.add_reference(f"file://{checkpoint(40)}")
        run.log_artifact(by_reference, aliases=["best", "checkpoint_global_step_40"])
    if step == 60:
        by_copy = wandb.Artifact("copied", type="model", metadata={"iteration": 60})
        by_copy.add_dir(str(checkpoint(60)))
        run.log_artifact(by_copy)


def log_bucket(run: "wandb.Run", step: int) -> None:
    if step == 40:
        stored = wandb.Artifact("model-tiny", type="model", metadata={"step": step})
        stored.add_reference("oss://bucket/tiny/step-40", name="step-40", checksum=False)
        run.log_artifact(stored, aliases=["best"])


def values(step: int) -> dict[str, object]:
    loss = {10: math.nan, 11: math.inf, 12: -math.inf}.get(step, 2.0 / step)
    found: dict[str, object] = {"train/loss": loss, "nested": {"a": {"b": step}}, "word": "text", "flag": True}
    if step % 20 == 0:
        found |= {"weights": wandb.Histogram(np_histogram=([1, 2, 1], [0.0, 1.0, 2.0, 3.0])), "eval/gsm8k": step / 400}
    return found


def main(steps: int, how: str) -> None:
    bare = {"x_disable_meta": True, "x_disable_stats": True, "host": "node-0", "console": "off", "program": "train.py"}
    run = wandb.init(
        entity="team",
        project="llm",
        name="tiny",
        group="sweep-1",
        notes="first try, é",
        tags=["sft", "small"],
        config={"lr": 3e-4, "optim": {"name": "adamw", "betas": [0.9, 0.95]}, "gone": 1},
        settings=wandb.Settings(**(bare if how == "fixture" else {"host": "node-0"})),
    )
    run.config.update({"late": 1})
    for step in range(1, steps + 1):
        run.log(values(step), step=step)
        (log_bucket if how == "fixture" else log_artifacts)(run, step)
    run.summary["best"] = 0.5
    run.summary["dropped"] = 1
    del run.summary["dropped"]
    if how == "killed":
        wait_for_disk()
        os.killpg(0, signal.SIGKILL)
    run.finish(exit_code=3 if how == "badly" else 0)


def wait_for_disk() -> None:
    """For much longer than the library holds anything back: fifteen seconds."""
    time.sleep(40)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
