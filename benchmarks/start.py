"""How soon a fresh service is ready, and what one process weighs."""

from benchmarks.service import line, median, running

RUNS = 5


def main() -> None:
    for backend in ("sqlite", "postgresql"):
        seconds, cpu, memory = [], [], []
        for _ in range(RUNS):
            with running(backend) as service:
                seconds.append(service.ready_seconds)
                cpu.append(service.cpu_seconds)
                service.call("POST", "/search", {"query": "strong at mathematics"})  # waits for what a start leaves out
                memory.append(service.resident_bytes / 2**20)
        figures = {"ready_seconds": median(seconds), "ready_cpu_seconds": median(cpu), "resident_mib": median(memory)}
        line("start", database=backend, **figures, runs=RUNS)


if __name__ == "__main__":
    main()
