"""POST /search over HTTP among many checkpoints x 20 scores, on both databases, also while scores keep arriving.

`CAIRN_BENCH_CHECKPOINTS=1000000 python -m benchmarks.capability_search` needs 4 GB of disk and a quarter of an hour.
"""

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.filling import Writer, fill
from benchmarks.service import Service, line, percentile, process
from tests.databases import postgresql_server

COUNT = int(os.environ.get("CAIRN_BENCH_CHECKPOINTS", "100000"))
BACKENDS = os.environ.get("CAIRN_BENCH_BACKENDS", "sqlite postgresql").split()
CALLS = 100
QUESTIONS: dict[str, dict[str, Any]] = {
    "strong_and_weak": {"query": "strong math but weak chat"},
    "three_capabilities": {"query": "very strong code, strong reasoning, weak knowledge"},
    "benchmarks": {
        "conditions": [
            {"benchmark": "gsm8k", "relation": ">", "threshold": 0.6},
            {"benchmark": "mt_bench", "relation": "<", "threshold": 0.4},  # every figure lies between 0 and 1 here
        ]
    },
    "before_a_step": {"query": "数学强但对话弱 第2万步之前"},
    "of_a_size": {"query": "strong math 7B models"},
    "nothing_strict": {"query": "gsm8k > 0.99 and mmlu < 0.01"},
}


def main() -> None:
    for backend in BACKENDS:
        with ExitStack() as stack:
            home = stack.enter_context(tempfile.TemporaryDirectory(prefix="cairn-bench-"))
            url = stack.enter_context(postgresql_server()) if backend == "postgresql" else None
            service = stack.enter_context(process(home, url))
            began = time.perf_counter()
            first = fill(service, Writer(Path(home), url), COUNT)
            line("fill", database=backend, checkpoints=COUNT, seconds=time.perf_counter() - began)
            for name, question in QUESTIONS.items():
                _measure(service, backend, name, question)
            _measure(service, backend, "more_like_this", {"like": first})
            _measure_profile(service, backend, first)
            for name in ("strong_and_weak", "before_a_step"):
                _measure(service, backend, f"{name}_while_scores_arrive", QUESTIONS[name], first)
            _measure_news(service, backend, first)
            line("memory", database=backend, checkpoints=COUNT, resident_mib=service.resident_bytes / 2**20)


def _measure(service: Service, backend: str, name: str, question: dict[str, Any], scored: str | None = None) -> None:
    """Latencies once the columns are read; the first call, which reads them, stands beside. `scored`: gets a score
    before every tenth call."""
    began = time.perf_counter()
    assert service.call("POST", "/search", question)["results"]
    cold = time.perf_counter() - began
    latencies, used = [], service.cpu_seconds
    for number in range(CALLS):
        if scored is not None and number % 10 == 0:
            _score(service, scored, number / CALLS)
        began = time.perf_counter()
        service.call("POST", "/search", question)
        latencies.append(time.perf_counter() - began)
    p50, p99 = percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3
    cpu = (service.cpu_seconds - used) / CALLS * 1e3
    figures = {"p50_ms": p50, "p99_ms": p99, "cpu_ms": cpu, "first_ms": cold * 1e3}
    line("search", database=backend, query=name, checkpoints=COUNT, **figures)


def _measure_profile(service: Service, backend: str, checkpoint: str) -> None:
    latencies = []
    for _ in range(50):
        began = time.perf_counter()
        service.call("GET", f"/checkpoints/{checkpoint}/profile")
        latencies.append(time.perf_counter() - began)
    p50, p99 = percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3
    line("profile", database=backend, checkpoints=COUNT, p50_ms=p50, p99_ms=p99, first_ms=latencies[0] * 1e3)


def _measure_news(service: Service, backend: str, checkpoint: str) -> None:
    """How long until a profile shows a score that has just been recorded."""
    waits = []
    for number in range(5):
        value = 0.9 + number / 1_000
        _score(service, checkpoint, value)
        began = time.perf_counter()
        while value not in _values(service, checkpoint):
            time.sleep(0.02)
        waits.append(time.perf_counter() - began)
    line("score_to_profile", database=backend, checkpoints=COUNT, most_seconds=max(waits))


def _score(service: Service, checkpoint: str, value: float) -> None:
    service.call("POST", f"/checkpoints/{checkpoint}/scores", [{"benchmark": "gsm8k", "value": value}])


def _values(service: Service, checkpoint: str) -> set[float]:
    found = service.call("GET", f"/checkpoints/{checkpoint}/profile")
    return {each["value"] for standing in found["capabilities"] for each in standing["benchmarks"]}


if __name__ == "__main__":
    main()
