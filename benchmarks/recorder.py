"""What recording costs a training loop: microseconds a call, and the change of a step of 2 ms.

Calls are timed by the wall clock in a process of its own, while its background sends. `away` is a port that takes
connections and never answers.
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

RUNS = 5
CALLS, STEPS = 2_000, 1_500

CALLING = """
import json, sys, time
import cairn
run = cairn.start("bench", sys.argv[1], capture=False)
took = {"log": [], "saved": []}
for step in range(1, int(sys.argv[2]) + 1):
    began = time.perf_counter()
    run.log(step, loss=1.0 / step, lr=3e-4)
    took["log"].append(time.perf_counter() - began)
    if step % 10 == 0:
        began = time.perf_counter()
        run.saved(f"/ckpt/{step}", step=step, loss=1.0 / step, tokens=step * 4096, cursor={"shard": step, "at": 17})
        took["saved"].append(time.perf_counter() - began)
    time.sleep(0.001)
print(json.dumps(took))
"""

# Steps with and without recording take turns in one process, so that both meet the same machine.
STEPPING = """
import json, sys, time
import numpy as np
import cairn
run = cairn.start("bench", sys.argv[1], capture=False)
rng = np.random.default_rng(0)
a, b = rng.random((64, 256)), rng.random((256, 256))
def seconds_of(count):
    began = time.perf_counter()
    for _ in range(count):
        a @ b
    return (time.perf_counter() - began) / count
seconds_of(2_000)
size = max(round(0.002 / min(seconds_of(50) for _ in range(20))), 1)
def step_of_training():
    for _ in range(size):
        a @ b
plain, recorded = [], []
for step in range(1, int(sys.argv[2]) + 1):
    for took, record in ((plain, False), (recorded, True)) if step % 2 else ((recorded, True), (plain, False)):
        began = time.perf_counter()
        step_of_training()
        if record:
            run.log(step, loss=1.0 / step, lr=3e-4)
        took.append(time.perf_counter() - began)
print(json.dumps({"plain": plain, "recorded": recorded}))
"""


def main() -> None:
    figures: dict[str, Any] = {}
    with running("sqlite") as service, socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(1)
        away = f"http://127.0.0.1:{hole.getsockname()[1]}"
        for where, url in (("there", service.url), ("away", away)):
            calls = [_measured(CALLING, url, service.token, f"calls-{where}-{run}", CALLS) for run in range(RUNS)]
            for call in ("log", "saved"):
                took = sorted(seconds for each in calls for seconds in each[call])
                figures[f"{call}_{where}_p50_us"] = took[len(took) // 2] * 1e6
                figures[f"{call}_{where}_p99_us"] = took[int(len(took) * 0.99)] * 1e6
            steps = [_measured(STEPPING, url, service.token, f"steps-{where}-{run}", STEPS) for run in range(RUNS)]
            figures[f"step_{where}_change_percent"] = median([_change(each) for each in steps]) * 100
            figures[f"loop_{where}_change_percent"] = median([_loop_change(each) for each in steps]) * 100
            figures["step_ms"] = median([median(each["plain"]) for each in steps]) * 1e3
    line("recorder", **figures, runs=RUNS)


def _change(took: dict[str, list[float]]) -> float:
    plain, recorded = median(took["plain"]), median(took["recorded"])
    return recorded / plain - 1


def _loop_change(took: dict[str, list[float]]) -> float:
    """Of all steps together, those included in which the background took its turn."""
    return sum(took["recorded"]) / sum(took["plain"]) - 1


def _measured(code: str, url: str, token: str, name: str, count: int) -> dict[str, list[float]]:
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as folder:
        environment = os.environ | {"CAIRN_URL": url, "CAIRN_TOKEN": token, "CAIRN_SPOOL": folder}
        environment["PYTHONPATH"] = str(Path(__file__).parents[1] / "client")
        environment |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code, name, str(count)], env=environment, capture_output=True, text=True, check=True
        )
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
