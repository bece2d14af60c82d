"""What the service will never take, set aside with its reason, so that everything behind it goes on."""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cairn.errors import (
    CairnError,
    Conflict,
    ConnectionFailed,
    Forbidden,
    Invalid,
    NotFound,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from cairn.spool.places import REFUSED

PASSING = frozenset({0, 401, 403, 408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True)
class Refusal:
    """One record that was refused: the file that holds it, and why."""

    path: Path
    at: str
    kind: str
    run: str
    step: int | None
    reason: str


def passes(fault: CairnError) -> bool:
    """Whether the same may be accepted later. What this client itself could not put into a request never will be."""
    if not fault.status and isinstance(fault, (Invalid, NotFound, Conflict, TooLarge)):
        return False
    return (
        isinstance(fault, (ConnectionFailed, Unauthenticated, Unavailable, Forbidden))
        or fault.status in PASSING
        or fault.status >= 500
    )


def set_aside(root: Path, record: dict[str, Any], body: Any, fault: CairnError | str) -> Path | None:
    """Writes the record, what was sent for it, and the problem; the same again is not written again. None where that
    cannot be written."""
    folder = root / REFUSED
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    said = {"record": record, "sent": body, "problem": _problem(fault)}
    try:
        same = hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode("ascii")).hexdigest()[:16]
        name = f"{time.time_ns():020d}-{same}.json"  # so that names tell the order
        folder.mkdir(mode=0o700, exist_ok=True, parents=True)
        if there := next(folder.glob(f"[0-9]*-{same}.json"), None):
            return there
        scratch = folder / f".{name}"
        with open(scratch, "w", encoding="utf-8", opener=_private) as file:
            json.dump({"at": at, **said}, file, indent=1, default=str)
        os.replace(scratch, folder / name)
    except (OSError, ValueError, TypeError, RecursionError):
        return None
    return folder / name


def refusals(root: Path) -> Iterator[Refusal]:
    """Those that were set aside below a root, the oldest first."""
    try:
        names = sorted(name for name in os.listdir(root / REFUSED) if name.endswith(".json") and name[0] != ".")
    except OSError:
        return
    for name in names:
        path = root / REFUSED / name
        try:
            said = json.loads(path.read_text("utf-8"))
            record, why = dict(said["record"]), str(said["problem"]["detail"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            continue
        run = f"{record.get('project', '?')}/{record.get('run', '?')}"
        step = record["step"] if isinstance(record.get("step"), int) else None
        yield Refusal(path, str(said.get("at", "")), str(record.get("kind")), run, step, why)


def _problem(fault: CairnError | str) -> dict[str, Any]:
    if isinstance(fault, str):
        return {"detail": fault}
    errors = [{"pointer": each.pointer, "detail": each.message} for each in fault.errors]
    return {"status": fault.status, "code": fault.code, "detail": fault.detail, "errors": errors}


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
