"""How an execution, its host, its copies and its times are written in records."""

import functools
import os
import socket
import uuid
from datetime import datetime, timezone
from typing import Any

from cairn.capture.secrets import mask_text
from cairn.recorder.plain import text


def new_key(job: str) -> str:
    """A key that no other execution has, made at once so that everything works before the service has answered."""
    return "-".join(part for part in (job, uuid.uuid4().hex[:16]) if part)


def kind_of(kind: Any) -> str:
    return "light" if type(kind) is str and kind == "light" else "archive"


def paths_of(path: Any) -> list[str]:
    if path is None:
        return []
    several = path if isinstance(path, (list, tuple, set)) else [path]
    found = []
    for each in several:
        said = text(os.fsdecode(os.fspath(each)))
        found.append(mask_text(said) if "://" in said else os.path.abspath(said))
    return found


def now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


@functools.lru_cache(maxsize=1)
def host() -> str:
    return socket.gethostname()
