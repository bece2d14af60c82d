"""The machine: host, processors, GPUs with their driver, CUDA, Python."""

import os
import platform
import socket
import sys
from typing import Any

from cairn.capture.commands import said_by

SECONDS = 8.0
_QUERY = "name,memory.total,driver_version,uuid"


def machine() -> dict[str, Any]:
    """What is known of this host. GPUs are asked of `nvidia-smi`, where it is there and answers in time."""
    said: dict[str, Any] = {
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "cpus": os.cpu_count(),
    }
    if memory := _memory_bytes():
        said["memory_bytes"] = memory
    said |= gpus()
    cuda = _cuda_version()
    return {**said, "cuda": cuda} if cuda else said


def gpus() -> dict[str, Any]:
    """`{gpus: [{name, memory_mib, uuid}], gpu_driver}`; empty where there is no nvidia-smi."""
    out = said_by(["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader,nounits"], seconds=SECONDS)
    if out is None:
        return {}
    return read_gpus(out.decode("utf-8", "replace"))


def read_gpus(table: str) -> dict[str, Any]:
    """The same from what nvidia-smi printed; lines of another shape are passed over."""
    found: list[dict[str, Any]] = []
    driver = ""
    for line in table.splitlines()[:1_024]:
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != 4 or not cells[0]:
            continue
        driver = cells[2]
        memory = {"memory_mib": int(cells[1])} if cells[1].isdigit() else {}
        found.append({"name": cells[0], **memory, "uuid": cells[3]})
    return {"gpus": found, "gpu_driver": driver} if found else {}


def _cuda_version() -> str | None:
    """Of torch where it is loaded: that is what trains. Else what the image says of itself."""
    torch = sys.modules.get("torch")
    version = getattr(getattr(torch, "version", None), "cuda", None)
    return version if isinstance(version, str) else os.environ.get("CUDA_VERSION")


def _memory_bytes() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None
