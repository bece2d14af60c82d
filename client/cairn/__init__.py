"""The training side of Cairn: record checkpoints, find them, roll back, compare.

    import cairn
    client = cairn.Client()
    run = client.create_run("llm", "llama-7b-a")
    client.register_checkpoint(run, 1000, loss=2.31, scores={"gsm8k": 0.21})

Names load when they are first used: importing this costs a training job next to nothing, and the readers of
result files in `cairn.formats` need none of the rest.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cairn.client import Client
    from cairn.errors import (
        AttemptWouldRestart,
        BadSettings,
        CairnError,
        CheckpointExists,
        Conflict,
        ConnectionFailed,
        FieldProblem,
        Forbidden,
        Invalid,
        Malformed,
        NotFound,
        TooLarge,
        TooManyRequests,
        Unauthenticated,
        Unavailable,
    )
    from cairn.recorder.start import resume_receipt, start
    from cairn.replicas import replica
    from cairn.transport import Retries

__all__ = [
    "AttemptWouldRestart",
    "BadSettings",
    "CairnError",
    "CheckpointExists",
    "Client",
    "Conflict",
    "ConnectionFailed",
    "FieldProblem",
    "Forbidden",
    "Invalid",
    "Malformed",
    "NotFound",
    "Retries",
    "TooLarge",
    "TooManyRequests",
    "Unauthenticated",
    "Unavailable",
    "replica",
    "resume_receipt",
    "start",
]

_HOMES = {
    "Client": "cairn.client",
    "Retries": "cairn.transport",
    "replica": "cairn.replicas",
    "start": "cairn.recorder.start",
    "resume_receipt": "cairn.recorder.start",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'cairn' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES.get(name, "cairn.errors")), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
