"""Content digests against the library's own speed: the same files, page cache warm, in one run.

The limit is `blake3(max_threads=AUTO).update_mmap` file by file, which is what its command-line tool does. The two
take turns, and the best round of each counts: what else the machine does only ever slows a round down.
"""

import os
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
    files = sorted(root.iterdir())
    ours, theirs = float("inf"), float("inf")
    for _ in range(ROUNDS):
        theirs = min(theirs, _seconds(lambda: _bare(files)))
        ours = min(ours, _seconds(lambda: digest_tree(root)))
    return {
        f"{name}_mib_per_second": size / MIB / ours,
        f"{name}_library_mib_per_second": size / MIB / theirs,
        f"{name}_share": theirs / ours,
    }


def _bare(files: list[Path]) -> None:
    for path in files:
        blake3(max_threads=blake3.AUTO).update_mmap(path).digest()


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
