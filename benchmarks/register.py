"""Register checkpoints: single calls by 8 clients, and batches of 500 by one; each against the raw limit.

The raw limit, measured in the same run: one INSERT and commit per call into a plain table by one connection for
single calls; JSON parsed and written as plain rows for batches.
"""

import json
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks import workload
from benchmarks.service import Service, line, median, percentile, running

CLIENTS, SINGLES, BATCH, BATCHED, RUNS = 8, 1_500, 500, 10_000, 3


def main() -> None:
    for backend in ("sqlite", "postgresql"):
        single, batch, memory = [], [], []
        latencies: list[float] = []
        for _ in range(RUNS):
            with running(backend) as service:
                single.append(_single_calls(service, latencies))
                service.analyse()
                batch.append(_batches(service))
                memory.append(service.resident_bytes / 2**20)
        line(
            "register",
            database=backend,
            single_per_second=median(single),
            single_p50_ms=percentile(latencies, 0.5) * 1e3,
            single_p99_ms=percentile(latencies, 0.99) * 1e3,
            batch_per_second=median(batch),
            resident_mib=median(memory),
            runs=RUNS,
        )
    line("register_raw_limit", database="sqlite", single_per_second=_raw_commits(), batch_per_second=_raw_rows())


def _single_calls(service: Service, latencies: list[float]) -> float:
    """Checkpoints a second."""
    service.call("POST", "/projects", {"name": workload.PROJECT})
    runs = [
        service.call("POST", "/runs", {"project": workload.PROJECT, "name": f"single-{number}"})["id"]
        for number in range(SINGLES // workload.CHECKPOINTS_PER_RUN)
    ]

    def register(index: int) -> float:
        body = workload.checkpoint(index)
        began = time.perf_counter()
        service.call("POST", f"/runs/{runs[index // workload.CHECKPOINTS_PER_RUN]}/checkpoints", body)
        return time.perf_counter() - began

    began = time.perf_counter()
    with ThreadPoolExecutor(CLIENTS) as pool:
        latencies += pool.map(register, range(SINGLES))
    return SINGLES / (time.perf_counter() - began)


def _batches(service: Service) -> float:
    """Checkpoints a second."""
    batches = [
        [workload.batch_item(index) for index in range(start, start + BATCH)] for start in range(0, BATCHED, BATCH)
    ]
    began = time.perf_counter()
    for batch in batches:
        service.call("POST", "/checkpoints:batch", batch)
    return BATCHED / (time.perf_counter() - began)


def _raw_commits(count: int = 300) -> float:
    with tempfile.TemporaryDirectory() as folder:
        connection = _table(Path(folder))
        began = time.perf_counter()
        for index in range(count):
            with connection:
                connection.execute("INSERT INTO t VALUES (?, ?, ?)", (index, 0, json.dumps(workload.checkpoint(index))))
        return count / (time.perf_counter() - began)


def _raw_rows(count: int = 5_000) -> float:
    bodies = [json.dumps(workload.batch_item(index)) for index in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        connection = _table(Path(folder))
        began = time.perf_counter()
        for start in range(0, count, BATCH):
            rows: list[tuple[int, int, Any]] = []
            for index in range(start, start + BATCH):
                values = json.loads(bodies[index])
                pairs = [*values["scores"].values(), *values["tags"].values()]
                rows += [(index, at, value) for at, value in enumerate(pairs)]
            with connection:
                connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        return count / (time.perf_counter() - began)


def _table(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "raw.db")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE t (a INTEGER, b INTEGER, c, PRIMARY KEY (a, b)) WITHOUT ROWID")
    return connection


if __name__ == "__main__":
    main()
