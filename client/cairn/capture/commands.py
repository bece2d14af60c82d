"""Runs a program for what it says, within a bound; whatever goes wrong is no answer."""

import os
import subprocess
from collections.abc import Sequence

MAX_BYTES = 64 * 1024 * 1024


def said_by(command: Sequence[str], *, seconds: float, folder: str | None = None) -> bytes | None:
    """Its standard output; None where it is absent, fails, or does not end in time."""
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(  # noqa: S603 - fixed commands of ours
            list(command),
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout[:MAX_BYTES] if done.returncode == 0 else None
