"""Throwing away what a process has left, for which nobody will ever say what it needs."""

import shutil
from pathlib import Path

from cairn.errors import Conflict, NotFound
from cairn.spool.backlog import Backlog
from cairn.spool.lease import claim
from cairn.spool.places import is_spool


def discard(folder: Path) -> int:
    """Removes the spool of a process that has ended; how many records had waited in it. The files of checkpoints are
    not touched. Raises `NotFound` for what is no spool, `Conflict` where its process still runs, OSError."""
    if not is_spool(folder):
        raise NotFound(f"{folder} is no spool. `cairn spool list` names them.")
    if claim(folder) is None:
        raise Conflict(f"The process of {folder} still runs, or another is sending it just now.")
    count = Backlog(folder).count()
    shutil.rmtree(folder)
    return count
