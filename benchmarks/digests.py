"""Content digests against the library's own speed: the same files, page cache warm, in one run.

The limit is `blake3(max_threads=AUTO).update_mmap` file by file, which is what its command-line tool does over the
files that `find` names: both sides list the folder and answer with a name and a digest in hexadecimal for each file.
The two take turns, and the best round of each counts: what else the machine does only ever slows a round down.
CPU seconds (of the processes that they start too) are given beside it, since a busy machine moves those less.
"""

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from blake3 import blake3
from cairn.digests import digest_tree
from cairn.digests.local import CORES

from benchmarks.service import line

MIB = 1024 * 1024
LARGE, SMALL, TINY = 1024 * MIB, 4 * MIB, 16 * 1024
ROUNDS = int(os.environ.get("CAIRN_BENCH_ROUNDS", "7"))


def main() -> None:
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as folder:
        for name, sizes in (("one_large", [LARGE]), ("many", [SMALL] * 256), ("tiny", [TINY] * 2_000)):
            root = Path(folder) / name
            _write(root, sizes)
            figures |= _measure(name, root, sum(sizes))
    line("digests", **figures, cores=CORES, rounds=ROUNDS)


def _write(root: Path, sizes: list[int]) -> None:
    root.mkdir()
    block = os.urandom(4 * MIB)
    for number, size in enumerate(sizes):
        with (root / f"{number:05d}.bin").open("wb") as file:
            file.write(number.to_bytes(8, "little"))
            for start in range(8, size, len(block)):
                file.write(block[: size - start])


def _measure(name: str, root: Path, size: int) -> dict[str, float]:
    """Ours, the library's, and the share of it that ours reaches."""
    ours, theirs = (float("inf"), float("inf")), (float("inf"), float("inf"))
    for _ in range(ROUNDS):
        theirs = _best(theirs, _seconds(lambda: _bare(root)))
        ours = _best(ours, _seconds(lambda: digest_tree(root)))
    return {
        f"{name}_mib_per_second": size / MIB / ours[0],
        f"{name}_library_mib_per_second": size / MIB / theirs[0],
        f"{name}_share": theirs[0] / ours[0],
        f"{name}_cpu_share": theirs[1] / ours[1],
    }


def _bare(root: Path) -> dict[str, str]:
    found = {}
    for folder, _, names in os.walk(root):
        for path in (os.path.join(folder, name) for name in names):
            found[path] = blake3(max_threads=blake3.AUTO).update_mmap(path).hexdigest()
    return found


def _best(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return min(one[0], other[0]), min(one[1], other[1])


def _seconds(work: Callable[[], object]) -> tuple[float, float]:
    """By the clock, and of all cores."""
    began, used = time.perf_counter(), _cpu_seconds()
    work()
    return time.perf_counter() - began, _cpu_seconds() - used


def _cpu_seconds() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


if __name__ == "__main__":
    main()
