"""What recording costs a training loop: microseconds a call, and the change of a step of 2 ms.

Measured in a process that trains and does nothing else, while its background sends. `away` is a port that takes
connections and never answers; `busy` is a service to which the background sends what a dead process has left, with one
save a second, more than any training makes; in the other two there are fifty. Figures by the clock are also given in
processor time, which other work on the machine changes little: `..._cpu_...` of the training's own thread,
`..._held_...` of the whole process during the call, which is the call and what it waited for in the background, and
`background_..._percent` of a processor for all the rest.

`first_...` is of the first second, in which the background imports what it needs.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.service import line, median, running

# Of each process, so that a busy machine gives fewer numbers and takes no longer.
SECONDS = (6, 4, 8)  # for single calls, for pairs of steps, for blocks of steps
BUSY_SECONDS = 30
LEFT_SAVES = 8_000  # by a dead process: more than is sent in that time

# Steps with and without recording take turns in one process, so that both meet the same machine and the same memory:
# one by one, of which the middle difference is what the call adds; and in blocks, after each of which the background
# gets the time to end, so that its own work falls on the recorded steps alone.
TRAINING = """
import json, os, sys, time
import numpy as np
import cairn
run = cairn.start("bench", sys.argv[1], capture=False)
wall, cpu, whole = time.perf_counter, time.thread_time, time.process_time
calls = {name: [] for name in ("first_log", "first_saved", "log", "saved")}
def timed(name, call, *arguments, **named):
    every, began, used = whole(), wall(), cpu()
    call(*arguments, **named)
    used, took, every = cpu() - used, wall() - began, whole() - every
    calls[name].append((took, used, every))
began = saved_at = wall()
pause, step = float(sys.argv[5]), 0
while (since := wall() - began) < float(sys.argv[2]):
    step += 1
    when = "first_" if since < 1.0 else ""
    timed(when + "log", run.log, step, loss=1.0 / step, lr=3e-4)
    if wall() - saved_at >= pause:
        saved_at, cursor = wall(), {"shard": step, "at": 17}
        named = {"step": step, "loss": 1.0 / step, "tokens": step * 4096, "cursor": cursor}
        timed(when + "saved", run.saved, f"/ckpt/{step}", **named)
    time.sleep(0.001)
if len(sys.argv) > 6:
    standing = [each.delivery.backlog.is_empty() for each in run._engine._sender._adopted]
    print(json.dumps({"calls": calls, "is_busy": standing == [False]}))
    sys.stdout.flush()
    os._exit(0)

rng = np.random.default_rng(0)
a, b = rng.random((64, 256)), rng.random((256, 256))
def train(size):
    for _ in range(size):
        a @ b
def seconds_of(size):
    used = cpu()
    train(size)
    return cpu() - used
seconds_of(2_000)
size = max(round(0.002 / min(seconds_of(50) / 50 for _ in range(40))), 1)
STEPS, SETTLE_SECONDS = 300, 0.7
def once(record):
    global step
    began, used = wall(), cpu()
    train(size)
    if record:
        step += 1
        run.log(step, loss=1.0 / step, lr=3e-4)
    used = cpu() - used
    return wall() - began, used
def block(record):
    process = time.process_time()
    took = [once(record) for _ in range(STEPS)]
    elapsed, used = (sum(each) for each in zip(*took))
    return {"wall": elapsed, "cpu": used, "background": time.process_time() - process - used}
def turns(measure, seconds, settle=0.0):
    found, ends = [], wall() + seconds
    while wall() < ends or len(found) < 4:
        pair = {}
        for record in (True, False) if len(found) % 2 else (False, True):
            time.sleep(settle)
            pair["recorded" if record else "plain"] = measure(record)
        found.append(pair)
    return found
pairs = turns(once, float(sys.argv[3]))
print(json.dumps({"calls": calls, "pairs": pairs, "blocks": turns(block, float(sys.argv[4]), SETTLE_SECONDS)}))
"""


# Leaves what it recorded to others: its token is refused.
LEAVING = """
import os, sys, time
import cairn
run = cairn.start("bench", "left", capture=False)
for save in range(int(sys.argv[1])):
    for step in range(save * 10, save * 10 + 10):
        run.log(step, loss=1.0 / (step + 1), lr=3e-4, norm=1.0)
    run.saved(f"/ckpt/{save}", step=save * 10 + 9, loss=1.0, tokens=save, cursor={"shard": save, "at": 17})
run.drain()
time.sleep(1.0)
os._exit(0)
"""


def main() -> None:
    figures: dict[str, Any] = {}
    with running("sqlite") as service, socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(1)
        away = f"http://127.0.0.1:{hole.getsockname()[1]}"
        for where, url in (("there", service.url), ("away", away)):
            found = _measured(url, service.token, [where, *map(str, SECONDS), "0.02"])
            figures |= _calls(where, found)
            figures |= {f"{name}_percent": value * 100 for name, value in _changes(where, found).items()}
            figures["step_ms"] = median([each["plain"][0] for each in found["pairs"]]) * 1e3
        found = _measured(
            service.url, service.token, ["busy", str(BUSY_SECONDS), "0", "0", "1", "only calls"], LEFT_SAVES
        )
        figures |= _calls("busy", found)
        figures["busy_is_busy_to_its_end"] = float(found["is_busy"])
    line("recorder", **figures)


def _calls(where: str, found: dict[str, Any]) -> dict[str, float]:
    """The middle, and what one call in a hundred passes; of fewer than a hundred calls, the longest."""
    figures = {}
    for call, took in found["calls"].items():
        for clock, name in enumerate(("", "cpu_", "held_")):
            ordered = sorted(each[clock] for each in took) or [0.0]
            figures[f"{call}_{where}_{name}p50_us"] = ordered[len(ordered) // 2] * 1e6
            figures[f"{call}_{where}_{name}p99_us"] = ordered[int(len(ordered) * 0.99)] * 1e6
    return figures


def _changes(where: str, found: dict[str, Any]) -> dict[str, float]:
    """Of a step by the clock and in processor time; of blocks of steps, in which the background takes its turn; and
    what the background itself used."""
    pairs = [(each["recorded"], each["plain"]) for each in found["pairs"]]
    blocks = [(each["recorded"], each["plain"]) for each in found["blocks"]]
    wall, cpu = (_middle_change([(on[clock], off[clock]) for on, off in pairs]) for clock in (0, 1))
    return {
        f"step_{where}_change": wall,
        f"step_{where}_cpu_change": cpu,
        f"loop_{where}_change": median([on["wall"] / off["wall"] - 1 for on, off in blocks]),
        f"loop_{where}_cpu_change": median([on["cpu"] / off["cpu"] - 1 for on, off in blocks]),
        f"background_{where}_cpu": median([on["background"] / on["wall"] for on, _ in blocks]),
    }


def _middle_change(pairs: list[tuple[float, float]]) -> float:
    return median([on - off for on, off in pairs]) / median([off for _, off in pairs])


def _measured(url: str, token: str, arguments: list[str], left_saves: int = 0) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as folder:
        environment = os.environ | {"CAIRN_URL": url, "CAIRN_TOKEN": token, "CAIRN_SPOOL": folder}
        environment["PYTHONPATH"] = str(Path(__file__).parents[1] / "client")
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if left_saves:
            leaving = [sys.executable, "-c", LEAVING, str(left_saves)]
            subprocess.run(leaving, env=environment | {"CAIRN_TOKEN": "none"}, check=True, stderr=subprocess.DEVNULL)
        command = [sys.executable, "-c", TRAINING, *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
