"""Where the last success of each run lies, so that a launch can go on while the registry is away.

One small file, `$XDG_STATE_HOME/cairn/resume.json`; it only ever says where to look, never what is there.
"""

import contextlib
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

MAX_BYTES = 4 * 1024 * 1024
MAX_RUNS = 1_000


@dataclass(frozen=True)
class LastSuccess:
    """Of one run: the folder that held its checkpoints, and what was resumed from there. `at`: seconds since 1970."""

    project: str
    run: str
    run_id: str
    root: str
    path: str
    step: int | None
    at: float


def state_file(environ: Mapping[str, str] | None = None) -> Path:
    env = os.environ if environ is None else environ
    base = env.get("XDG_STATE_HOME") or Path(env.get("HOME") or Path.home()) / ".local" / "state"
    return Path(base) / "cairn" / "resume.json"


def last_success(run: str, environ: Mapping[str, str] | None = None) -> LastSuccess | None:
    """What is kept of a run, named by its id or as project/run; a file that cannot be read holds nothing."""
    for each in _read(state_file(environ)):
        if run in (each.run_id, f"{each.project}/{each.run}"):
            return each
    return None


def keep(success: LastSuccess, environ: Mapping[str, str] | None = None) -> None:
    """Raises OSError where the file cannot be written."""
    path = state_file(environ)
    others = [each for each in _read(path) if (each.project, each.run) != (success.project, success.run)]
    kept = sorted([*others, success], key=lambda each: each.at)[-MAX_RUNS:]
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, partial = tempfile.mkstemp(dir=path.parent, prefix=".resume-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"version": 1, "runs": [asdict(each) for each in kept]}, file, indent=1)
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise


def success_of(project: str, run: str, run_id: str, path: str, step: int | None) -> LastSuccess:
    """The folder beside which the next checkpoints of the run are likely to be."""
    return LastSuccess(project, run, run_id, os.path.dirname(path.rstrip("/")), path, step, time.time())


def _read(path: Path) -> list[LastSuccess]:
    try:
        with path.open(encoding="utf-8") as file:
            document = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return []
    rows = document.get("runs") if isinstance(document, dict) else None
    found = [_row(each) for each in rows] if isinstance(rows, list) else []
    return [each for each in found if each is not None]


def _row(value: Any) -> LastSuccess | None:
    if not isinstance(value, dict):
        return None
    texts = ("project", "run", "run_id", "root", "path")
    step, at = value.get("step"), value.get("at")
    sound = all(isinstance(value.get(name), str) for name in texts) and isinstance(at, (int, float))
    if not sound or not (step is None or isinstance(step, int)):
        return None
    return LastSuccess(**{name: value[name] for name in texts}, step=step, at=float(value["at"]))
