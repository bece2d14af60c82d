"""A small training that saves, resumes and writes its losses: momentum descent of a few numbers, no library at all.

    python train.py LOAD|- STEPS OUT [WORD...]     goes on from the folder LOAD, or from nothing

A word makes it misbehave: cold ignores what it loaded, forget its momentum, crash, kill, hang, silent (no losses),
short (half of the steps), scribble (writes into LOAD), stdout (losses to standard output), nan.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

RATE, MOMENTUM, SIZE = 0.01, 0.9, 8
SEED = 1


class Training:
    """Weights, momentum and step; the batch of a step is the same whoever asks for it."""

    def __init__(self) -> None:
        self.step, self.weights, self.momentum = 0, [0.0] * SIZE, [0.0] * SIZE

    def train(self) -> float:
        self.step += 1
        draw = random.Random(SEED * 1_000_003 + self.step)
        goal = [1.0 + place / SIZE + draw.gauss(0, 0.1) for place in range(SIZE)]
        apart = [own - wanted for own, wanted in zip(self.weights, goal, strict=True)]
        for place, each in enumerate(apart):
            self.momentum[place] = MOMENTUM * self.momentum[place] + 2 * each
            self.weights[place] -= RATE * self.momentum[place]
        return sum(each * each for each in apart)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        (folder / "weights.json").write_text(json.dumps(self.weights))
        (folder / "optimizer.json").write_text(json.dumps({"step": self.step, "momentum": self.momentum}))

    def load(self, folder: Path) -> None:
        self.weights = json.loads((folder / "weights.json").read_text())
        said = json.loads((folder / "optimizer.json").read_text())
        self.step, self.momentum = said["step"], said["momentum"]


def main(load: str, steps: int, out: Path, words: list[str]) -> None:
    training = Training()
    if load != "-":
        training.load(Path(load))
    if "cold" in words:
        training.weights, training.momentum = [0.0] * SIZE, [0.0] * SIZE
    if "forget" in words:
        training.momentum = [0.0] * SIZE
    if "crash" in words:
        raise RuntimeError("size mismatch for weights.json: api_key=sk-0123456789abcdef0123")
    if "hang" in words:
        print("waiting for the other ranks", flush=True)
        time.sleep(600)
    if "kill" in words:
        os.kill(os.getpid(), signal.SIGKILL)
    if "scribble" in words:
        (Path(load) / "weights.json").write_text("[]")
    for _ in range(steps // 2 if "short" in words else steps):
        loss = training.train()
        line = json.dumps({"step": training.step, "loss": float("nan") if "nan" in words else loss})
        if "stdout" in words:
            print(line)
        elif "silent" not in words:
            with out.open("a") as file:
                file.write(line + "\n")
    if "says" in words:
        print(json.dumps({"software": {"torch": "2.9.0"}, "layout": {"world_size": 1}}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
