"""How the state is split across ranks, asked of what the job has loaded: torch.distributed, Megatron, DeepSpeed, FSDP.

Only what a library says of itself is taken, through functions that look something up and never communicate. Degrees
that nobody says are left out: unknown is not one.
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

from cairn.capture.fsdp import fsdp_layout
from cairn.capture.scheduler import world_size

_MEGATRON = {
    "tp": "get_tensor_model_parallel_world_size",
    "pp": "get_pipeline_model_parallel_world_size",
    "dp": "get_data_parallel_world_size",
    "cp": "get_context_parallel_world_size",
    "ep": "get_expert_model_parallel_world_size",
}


def layout(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`{world_size, tp, pp, dp, cp, ep, sharding}`, as far as it is known now."""
    said: dict[str, Any] = {}
    size = _asked("torch.distributed", "get_world_size", when="is_initialized")
    size = size if size is not None else world_size(os.environ if environ is None else environ)
    if size is not None:
        said["world_size"] = size
    for name, function in _MEGATRON.items():
        degree = _asked("megatron.core.parallel_state", function, when="model_parallel_is_initialized")
        if degree is not None:
            said[name] = degree
    if "dp" not in said:
        degree = _asked("deepspeed.utils.groups", "_get_data_parallel_world_size")
        if degree is not None and sys.modules.get("deepspeed") is not None and "world_size" in said:
            said["dp"] = degree
    if "world_size" in said and "tp" not in said:  # Megatron splits its state in its own way
        said |= fsdp_layout()
    return said


def _asked(module: str, function: str, when: str | None = None) -> int | None:
    """What a function of a loaded module says; None where it is not loaded, not ready, or fails."""
    loaded = sys.modules.get(module)
    if loaded is None:
        return None
    try:
        if when is not None and not getattr(loaded, when)():
            return None
        found = getattr(loaded, function)()
    except Exception:  # whatever a library that is half set up does
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 1 else None
