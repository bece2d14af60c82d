"""Elastic jobs, told from inside: torchrun forms its workers anew when one fails or the membership changes.

A worker of a later formation is a new process with another count of restarts or, after a change of membership, the same
one. Its parent, torchrun's agent, is the same process as before: what the agent's workers were last is kept in a small
file on the agent's own host, so that a later formation is known for certain, whatever the log says.
"""

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cairn.spool.owner import start_of
from cairn.spool.places import local_folder

KEPT_SECONDS = 30 * 86_400.0


@dataclass(frozen=True)
class Formation:
    """The workers that torchrun has formed. `turn` counts the formations before with the same `restart_count`, which
    only failures raise. `before`: the number of workers in the formation before, where that is known."""

    restart_count: int
    world_size: int
    turn: int = 0
    before: int | None = None

    @property
    def is_anew(self) -> bool:
        return self.restart_count > 0 or self.turn > 0

    @property
    def reason(self) -> str:
        """Of the attempt that it is."""
        if self.before is not None and (self.turn or self.before != self.world_size):
            return f"membership change: torchrun formed {self.world_size} workers anew, {self.before} before"
        return f"torchrun started its {self.world_size} workers again after a failure (restart {self.restart_count})"


def formed_key(key: str, restart_count: int, turn: int) -> str:
    """The key of a formation's attempt, as the workers and the supervisor of their job call it."""
    if not restart_count and not turn:
        return key
    return f"{key}-r{restart_count}" + (f"m{turn}" if turn else "")


def this_formation(run: str, environ: Mapping[str, str] | None = None) -> Formation | None:
    """Which formation this worker of a run belongs to; None where torchrun did not start it. Never raises."""
    env = os.environ if environ is None else environ
    job = env.get("TORCHELASTIC_RUN_ID")
    counts = [env.get(name, "") for name in ("TORCHELASTIC_RESTART_COUNT", "WORLD_SIZE")]
    if not job or not all(count.isascii() and count.isdigit() for count in counts):
        return None
    found = Formation(*(int(count[:9]) for count in counts))
    agent = os.getppid()
    which = hashlib.sha256(json.dumps([agent, start_of(agent), job, run]).encode()).hexdigest()[:32]
    try:
        return _kept(local_folder(), f"formation-{which}.json", found)
    except OSError:
        return found


def _kept(folder: Path, name: str, found: Formation) -> Formation:
    """Completed by what the same agent formed before, and kept for the next. Raises OSError."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        said = json.loads((folder / name).read_text("utf-8"))
        last = Formation(**said["formation"])
        if said["worker"] == os.getpid():  # which starts once more
            return last
        turn = last.turn + 1 if last.restart_count == found.restart_count else 0
        found = Formation(found.restart_count, found.world_size, turn, last.world_size)
    for old in folder.glob("formation-*.json"):
        if time.time() - old.stat().st_mtime > KEPT_SECONDS:
            old.unlink(missing_ok=True)
    scratch = folder / f".{os.getpid()}-{name}"
    scratch.write_text(json.dumps({"worker": os.getpid(), "formation": asdict(found)}), encoding="utf-8")
    os.replace(scratch, folder / name)
    return found
