"""Who started this process and as which of how many: SLURM, Kubernetes, torchrun, MPI, and what tunes a run."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cairn.capture.secrets import mask

_SLURM = {
    "job_id": "SLURM_JOB_ID",
    "array_task": "SLURM_ARRAY_TASK_ID",
    "restart_count": "SLURM_RESTART_COUNT",
    "partition": "SLURM_JOB_PARTITION",
    "nodes": "SLURM_JOB_NODELIST",
    "node_count": "SLURM_JOB_NUM_NODES",
    "account": "SLURM_JOB_ACCOUNT",
    "qos": "SLURM_JOB_QOS",
    "job_name": "SLURM_JOB_NAME",
}
_TORCHRUN = {
    "run_id": "TORCHELASTIC_RUN_ID",
    "restart_count": "TORCHELASTIC_RESTART_COUNT",
    "world_size": "WORLD_SIZE",
    "max_restarts": "TORCHELASTIC_MAX_RESTARTS",
    "local_world_size": "LOCAL_WORLD_SIZE",
    "groups": "GROUP_WORLD_SIZE",
}
_KUBERNETES = {
    "pod": "POD_NAME",
    "namespace": "POD_NAMESPACE",
    "node": "NODE_NAME",
    "job": "JOB_NAME",
    "job_index": "JOB_COMPLETION_INDEX",
}
# What changes what a training computes or how fast, and names nobody.
_TUNING = re.compile(
    r"(NCCL|RCCL|TORCH_NCCL|TORCH|PYTORCH|CUDA|CUBLAS|CUDNN|XLA|NVTE|OMP|MKL|UCX|FI|GLOO|TRITON|TOKENIZERS|JAX|DEEPSPEED)_[A-Z0-9_]+"
)
_SCHEDULERS = ("SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "_CONDOR_SLOT")
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
WORLD_SIZES = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def scheduler(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`{slurm: {...}, kubernetes: {...}, torchrun: {...}, variables: {...}}`, those that are there."""
    env = os.environ if environ is None else environ
    said: dict[str, Any] = {"slurm": _named(env, _SLURM), "torchrun": _named(env, _TORCHRUN)}
    if not (env.get("TORCHELASTIC_RUN_ID") or env.get("LOCAL_WORLD_SIZE")):
        said["torchrun"] = {}
    if env.get("KUBERNETES_SERVICE_HOST"):
        own = {"pod": env["HOSTNAME"]} if env.get("HOSTNAME") else {}
        said["kubernetes"] = {**own, **_namespace(), **_named(env, _KUBERNETES)}
    said["variables"] = mask({name: env[name][:1_000] for name in sorted(env) if _TUNING.fullmatch(name)})
    return {name: value for name, value in said.items() if value}


def rank(environ: Mapping[str, str] | None = None) -> int:
    """Which process of the job this is; 0 where there is one only.

    torchrun's RANK first. A scheduler's own number only counts where it starts one process per rank.
    """
    return _first_number(RANKS, environ, 0)


def world_size(environ: Mapping[str, str] | None = None) -> int | None:
    found = _first_number(WORLD_SIZES, environ, 0)
    return found or None


def is_scheduled(environ: Mapping[str, str] | None = None) -> bool:
    """Whether something runs this job that may end it by itself."""
    env = os.environ if environ is None else environ
    return any(env.get(name) for name in _SCHEDULERS)


def job_key(environ: Mapping[str, str] | None = None) -> str:
    """What a person knows this execution by, to begin its key with; '' without a scheduler."""
    env = os.environ if environ is None else environ
    if env.get("SLURM_JOB_ID"):
        return f"slurm-{env['SLURM_JOB_ID']}"
    name = env.get("TORCHELASTIC_RUN_ID") or (env.get("HOSTNAME") if env.get("KUBERNETES_SERVICE_HOST") else "")
    return re.sub(r"[^A-Za-z0-9._-]", "-", name or "")[:100]


def nodes(environ: Mapping[str, str] | None = None) -> list[str]:
    """The hosts of a SLURM job: `node[01-03,7]` becomes four names; empty where nobody says."""
    env = os.environ if environ is None else environ
    return expand_nodes(env.get("SLURM_JOB_NODELIST", ""))


def expand_nodes(text: str, most: int = 100_000) -> list[str]:
    """`a[1-2],b7` as `a1, a2, b7`. What has another shape is kept as it stands."""
    found: list[str] = []
    for part in re.findall(r"[^,\[\]]+(?:\[[^\]]*\][^,\[\]]*)?", text[:100_000]):
        match = re.fullmatch(r"([^\[\]]+)\[([0-9,\-]+)\]([^\[\]]*)", part)
        if match is None:
            found.append(part)
            continue
        for each in match[2].split(","):
            first, dash, last = each.partition("-")
            if not first.isdigit() or (dash and not last.isdigit()):
                continue
            numbers = range(int(first), min(int(last) if dash else int(first), int(first) + most) + 1)
            found += [f"{match[1]}{number:0{len(first)}d}{match[3]}" for number in numbers]
        if len(found) > most:
            break
    return found[:most]


def _first_number(names: tuple[str, ...], environ: Mapping[str, str] | None, default: int) -> int:
    env = os.environ if environ is None else environ
    for name in names:
        value = env.get(name, "")
        if value.isascii() and value.isdigit():
            return int(value[:9])
    return default


def _named(env: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {name: env[variable][:1_000] for name, variable in names.items() if env.get(variable)}


def _namespace() -> dict[str, str]:
    try:
        return {"namespace": _NAMESPACE.read_text("utf-8").strip()[:253]}
    except OSError:
        return {}
