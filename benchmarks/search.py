"""The top 20 of four queries over 100,000 checkpoints x 20 scores, over HTTP, on both databases."""

import os
import time

from benchmarks import workload
from benchmarks.service import Service, line, percentile, running

COUNT = int(os.environ.get("CAIRN_BENCH_CHECKPOINTS", "100000"))
CALLS = 60


def main() -> None:
    for backend in ("sqlite", "postgresql"):
        with running(backend) as service:
            began = time.perf_counter()
            for start in range(0, COUNT, 500):
                items = [workload.batch_item(index) for index in range(start, min(start + 500, COUNT))]
                service.call("POST", "/checkpoints:batch", items)
            line("fill", database=backend, checkpoints=COUNT, seconds=time.perf_counter() - began)
            for name, parameters in workload.queries(COUNT).items():
                _measure(service, backend, name, parameters)
            line("memory", database=backend, resident_mib=service.resident_bytes / 2**20)


def _measure(service: Service, backend: str, name: str, parameters: dict[str, str]) -> None:
    latencies = []
    for _ in range(CALLS):
        began = time.perf_counter()
        page = service.call("GET", "/checkpoints", fields={**parameters, "limit": "20"})
        latencies.append(time.perf_counter() - began)
        assert len(page["items"]) == 20
    p50, p99 = percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3
    line("search", database=backend, query=name, checkpoints=COUNT, p50_ms=p50, p99_ms=p99)


if __name__ == "__main__":
    main()
