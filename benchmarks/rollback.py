"""POST /rollback over a run of 10,000 checkpoints with 20 scores each, over HTTP, on both databases."""

import os
import random
import time
from datetime import timedelta
from typing import Any

from benchmarks.service import Service, line, median, percentile, running
from benchmarks.workload import START

COUNT = int(os.environ.get("CAIRN_BENCH_ROLLBACK", "10000"))
CALLS = 40
BENCHMARKS = (
    *("gsm8k", "minerva_math", "mmlu", "arc_challenge", "arc_easy", "humaneval", "mbpp", "hellaswag", "winogrande"),
    *("truthfulqa_mc2", "bbh", "ifeval", "drop", "triviaqa", "nq_open", "piqa", "boolq", "sciq", "openbookqa", "race"),
)
PIECES = dict.fromkeys(("weights", "optimizer", "data_position", "random_state"), "present")
QUESTIONS: dict[str, dict[str, Any]] = {
    "run": {},
    "benchmark": {"watch": {"benchmark": "gsm8k"}},
    "capability": {"watch": {"capability": "math"}},
    "production": {"mode": "production", "watch": {"capability": "math"}},
}


def item(index: int) -> dict[str, Any]:
    """A whole checkpoint every 100 steps; every score falls by 8 points after seven tenths of the run."""
    step, chance = 100 * (index + 1), random.Random(index)
    level = 0.2 + 0.03 * (index + 1).bit_length() - (0.08 if index >= COUNT * 7 // 10 else 0.0)
    scores = [
        {"benchmark": name, "metric": "acc", "value": round(level + chance.gauss(0, 0.012), 4), "n_samples": 1319}
        for name in BENCHMARKS
    ]
    saved_at = (START + timedelta(seconds=12 * step)).isoformat().replace("+00:00", "Z")
    copy = {"uri": f"/ckpt/{step}", "tier": "shared", "bytes": 10**11}
    known = {"loss": 2.0, "saved_at": saved_at, "pieces": PIECES, "replicas": [copy], "scores": scores}
    return {"project": "bench", "run": "long", "step": step, **known}


def main() -> None:
    for backend in ("sqlite", "postgresql"):
        with running(backend) as service:
            for start in range(0, COUNT, 500):
                batch = [item(index) for index in range(start, min(start + 500, COUNT))]
                service.call("POST", "/checkpoints:batch", batch)
            service.analyse()
            run = service.call("GET", "/runs")["items"][0]["id"]
            for name, question in QUESTIONS.items():
                _measure(service, backend, name, {"run_id": run, **question})


def _measure(service: Service, backend: str, name: str, question: dict[str, Any]) -> None:
    """The first answer, which reads the scores that are kept from then on, stands beside the others."""
    latencies, used = [], service.cpu_seconds
    for _ in range(CALLS):
        began = time.perf_counter()
        found = service.call("POST", "/rollback", question)
        latencies.append(time.perf_counter() - began)
        assert len(found["candidates"]) == 5
        assert found["considered"] == COUNT
    first, *later = latencies
    line(
        "rollback",
        database=backend,
        question=name,
        checkpoints=COUNT,
        p50_ms=median(later) * 1e3,
        p99_ms=percentile(later, 0.99) * 1e3,
        best_ms=min(later) * 1e3,
        first_ms=first * 1e3,
        cpu_ms=(service.cpu_seconds - used) / CALLS * 1e3,
    )


if __name__ == "__main__":
    main()
