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


def curve_name(said: Any) -> str:
    """A name as the service takes it; '' where nothing of it can be seen. Control characters become spaces. Never
    raises."""
    try:
        name = text(str(said))
    except Exception:  # whatever an object of somebody else's does
        return ""
    if not name.isprintable():
        name = "".join(" " if letter < " " or letter == "\x7f" else letter for letter in name)
    return name.strip()[:500]


def kind_of(kind: Any) -> str:
    return "light" if type(kind) is str and kind == "light" else "archive"


def paths_of(path: Any) -> list[str]:
    """Addresses as they are recorded. Raises ValueError where one is empty: it would mean the working folder."""
    if path is None:
        return []
    several = path if isinstance(path, (list, tuple, set)) else [path]
    return [_address(text(os.fsdecode(os.fspath(each)))) for each in several]


def _address(said: str) -> str:
    if not said.strip():
        raise ValueError("an empty path")
    if said.startswith("file://"):
        from urllib.parse import unquote, urlsplit

        said = unquote(urlsplit(said).path)
    return mask_text(said) if "://" in said else os.path.abspath(said)


def now() -> str:
    return datetime.now(timezone.utc).isoformat().replace("+00:00", "Z")


@functools.lru_cache(maxsize=1)
def host() -> str:
    return socket.gethostname()
