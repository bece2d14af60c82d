"""Whether the model is sharded by FSDP2 (`fully_shard`), asked of the table that torch keeps of it.

The names are torch's private ones: where a version has others, nothing is said. FSDP1 keeps no table, and a look among
all objects of a training process would hold it up, so its layout is said by hand.
"""

import sys
from typing import Any


def fsdp_layout() -> dict[str, Any]:
    """`{sharding, dp}` of the process's first model that is sharded so; empty where there is none."""
    try:
        return _of_fully_shard()
    except Exception:  # whatever a library that is half set up does
        return {}


def _of_fully_shard() -> dict[str, Any]:
    known = getattr(sys.modules.get("torch.distributed._composable_state"), "_module_state_mapping", {})
    for state in [refer() for refer in list(known.values())]:
        group = getattr(state, "_fsdp_param_group", None)
        if group is not None:
            mesh = group.mesh_info.mesh
            return {"sharding": "hsdp" if mesh.ndim > 1 else "fsdp2", "dp": int(mesh.size())}
    return {}
