"""A lineage 10,000 deep; a comparison of 100 benchmarks with two configs of 2,000 keys: over HTTP, both databases."""

import os
import time
from typing import Any

from benchmarks.service import Service, line, percentile, running

DEPTH = int(os.environ.get("CAIRN_BENCH_DEPTH", "10000"))
BENCHMARKS, KEYS = 100, 2_000
CALLS = 40


def main() -> None:
    for backend in ("sqlite", "postgresql"):
        with running(backend) as service:
            for project in ("deep", "wide"):
                service.call("POST", "/projects", {"name": project})
            ids = _chain(service, backend)
            service.analyse()
            for name, identity in (("newest", ids[-1]), ("oldest", ids[0])):
                _measure(service, backend, f"lineage of the {name}", "GET", f"/checkpoints/{identity}/lineage")
            for name, pair in _pairs(service).items():
                _measure(service, backend, f"compare, {name}", "POST", "/compare", pair)


def _chain(service: Service, backend: str) -> list[str]:
    """Each checkpoint fine-tuned from the one before it, in batches as a backfill sends them."""
    ids: list[str] = []
    began = time.perf_counter()
    run = service.call("POST", "/runs", {"project": "deep", "name": "chain"})["id"]
    for step in range(DEPTH):
        body: dict[str, Any] = {"step": step}
        if ids:
            body["parents"] = [{"checkpoint_id": ids[-1], "relation": "fine_tuned_from"}]
        ids.append(service.call("POST", f"/runs/{run}/checkpoints", body)["id"])
    line("lineage filled", database=backend, depth=DEPTH, seconds=time.perf_counter() - began)
    return ids


def _pairs(service: Service) -> dict[str, dict[str, str]]:
    """Two checkpoints whose scores moved a little, and two of which every tenth benchmark fell."""
    found = {}
    for name, fall in (("nothing fell", 0.0), ("ten fell", 0.2)):
        run = service.call("POST", "/runs", {"project": "wide", "name": name})["id"]
        ids = []
        for step in (1, 2):
            scores = [
                {
                    "benchmark": f"bench-{place:03}",
                    "metric": "acc",
                    "value": 0.6 - (fall if step == 2 and place % 10 == 0 else 0.0),
                    "stderr": 0.01,
                    "n_samples": 2000,
                }
                for place in range(BENCHMARKS)
            ]
            config = {
                f"group{place // 50}": {
                    f"key{key}": key * step if key % 40 == 0 else key for key in range(place, place + 50)
                }
                for place in range(0, KEYS, 50)
            }
            body = {"step": step, "scores": scores, "config": config}
            ids.append(service.call("POST", f"/runs/{run}/checkpoints", body)["id"])
        found[name] = {"baseline": ids[0], "candidate": ids[1]}
    return found


def _measure(service: Service, backend: str, name: str, method: str, path: str, body: Any = None) -> None:
    latencies, used = [], service.cpu_seconds
    for _ in range(CALLS):
        began = time.perf_counter()
        service.fetch(method, path, body)
        latencies.append(time.perf_counter() - began)
    first, p50, p99 = latencies[0] * 1e3, percentile(latencies, 0.5) * 1e3, percentile(latencies, 0.99) * 1e3
    cpu = (service.cpu_seconds - used) / CALLS * 1e3
    line("evidence", database=backend, question=name, first_ms=first, p50_ms=p50, p99_ms=p99, cpu_ms=cpu)


if __name__ == "__main__":
    main()
