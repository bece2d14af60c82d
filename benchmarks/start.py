"""How soon a fresh service is ready, and what one process weighs."""

from benchmarks.service import line, median, running

RUNS = 5


def main() -> None:
    for backend in ("sqlite", "postgresql"):
        seconds, memory = [], []
        for _ in range(RUNS):
            with running(backend) as service:
                seconds.append(service.ready_seconds)
                service.call("GET", "/checkpoints")
                memory.append(service.resident_bytes / 2**20)
        line("start", database=backend, ready_seconds=median(seconds), resident_mib=median(memory), runs=RUNS)


if __name__ == "__main__":
    main()
