"""`cairn scan` of a tree of small checkpoint folders, registration included, and again where nothing is new.

CAIRN_BENCH_SCAN is the number of folders (2,000 unless said; the promise is 100,000 within five minutes). A third each
are folders of Hugging Face's Trainer, of safetensors alone, and of torch's distributed checkpoints.
"""

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.service import Service, line, running

COUNT = int(os.environ.get("CAIRN_BENCH_SCAN", "2000"))
PER_RUN = 100
DCP = Path(__file__).parents[1] / "tests/client/fixtures/checkpoints/dcp/fsdp2/step-20"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cairn-bench-") as folder, running("sqlite") as service:
        root = Path(folder) / "tree"
        files = sum(_checkpoint(root, number) for number in range(COUNT))
        first, plan_seconds = _scan(service, root, "--no-dry-run"), _scan(service, root, "--dry-run")
        again = _scan(service, root, "--no-dry-run")
        memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        line(
            "scan",
            checkpoints=COUNT,
            files=files,
            seconds=first,
            checkpoints_per_second=COUNT / first,
            plan_seconds=plan_seconds,
            again_seconds=again,
            largest_child_mib=memory,
        )
        recorded = service.call("GET", "/checkpoints", fields={"filter": "project = 'scan'", "limit": "1"})
        assert recorded["items"], "nothing was recorded"


def _scan(service: Service, root: Path, flag: str) -> float:
    """Seconds of a run of the command, its start included."""
    command = [str(Path(sys.executable).with_name("cairn")), "scan", str(root), "--project", "scan", flag]
    environment = os.environ | {"CAIRN_URL": service.url, "CAIRN_TOKEN": service.token}
    began = time.perf_counter()
    done = subprocess.run(
        [*command, "--tier", "shared", "--settle", "0"], env=environment, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    return seconds


def _checkpoint(root: Path, number: int) -> int:
    """The number of files written."""
    run, step = f"team-{number // PER_RUN % 8}/run-{number // PER_RUN:05d}", (number % PER_RUN + 1) * 500
    kind = number // PER_RUN % 3
    folder = root / run / (f"checkpoints/step-{step}" if kind else f"checkpoint-{step}")
    folder.mkdir(parents=True)
    if kind == 2 and DCP.exists():
        for path in DCP.iterdir():
            (folder / path.name).write_bytes(path.read_bytes())
        return len(os.listdir(folder))
    (folder / "model.safetensors").write_bytes(_safetensors())
    (folder / "config.json").write_text("{}")
    if kind == 0:
        state = {"global_step": step, "epoch": step / 1e4, "is_world_process_zero": True, "log_history": []}
        state["log_history"] = [
            {"step": each * 10, "loss": 3 - each / 1e3, "learning_rate": 1e-4} for each in range(50)
        ]
        (folder / "trainer_state.json").write_text(json.dumps(state))
        return 3
    return 2


def _safetensors() -> bytes:
    tensors = {
        f"layers.{layer}.weight": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [layer * 8, layer * 8 + 8]}
        for layer in range(32)
    }
    head = json.dumps(tensors).encode()
    return struct.pack("<Q", len(head)) + head + bytes(32 * 8)


if __name__ == "__main__":
    main()
