"""Running the command of a drill: no shell, a session of its own, its words on standard error, its losses read."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from cairn.drill.losses import Told
from cairn.supervise.excerpt import clean

LAST_LINES = 6
LONGEST_LINE = 400
LOOK_SECONDS = 0.05
ENDING_SECONDS = 10.0


@dataclass
class Outcome:
    """How a command ended. `code` None: it was ended because its time, `limit_seconds`, was over. `first_loss_seconds`:
    from its start to the first loss; None: it wrote none."""

    code: int | None
    seconds: float
    told: Told
    first_loss_seconds: float | None
    last_lines: Sequence[str]
    limit_seconds: float | None = None

    @property
    def fault(self) -> str:
        """Why it did not end well; '' where it did."""
        if self.code == 0:
            return ""
        how = f"did not end within {self.limit_seconds or 0:g} s"
        if self.code is not None:
            how = f"was ended by signal {-self.code}" if self.code < 0 else f"ended with {self.code}"
        end = " | ".join(self.last_lines)
        return f"the command {how}{f'; its last words: {end}' if end else ''}"


@dataclass
class _Heard:
    told: Told = field(default_factory=Told)
    first_at: float | None = None
    last: "deque[str]" = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def listen(self, stream: IO[bytes], losses: bool) -> None:
        """Until the stream ends: what arrives goes on to standard error."""
        with stream:
            for raw in iter(stream.readline, b""):
                self._take(raw.decode("utf-8", "replace"), losses)

    def _take(self, line: str, losses: bool) -> None:
        with self.lock:
            sys.stderr.write(line)
            if losses and self.told.take(line):
                self.first_at = self.first_at or time.monotonic()
            elif line.strip():
                self.last.append(clean(line.rstrip())[:LONGEST_LINE])


def run_command(
    words: Sequence[str], out: Path, timeout_seconds: float | None = None, *, environ: Mapping[str, str]
) -> Outcome:
    """To its end, or that of its time. Raises OSError where it cannot be started; an interruption ends it first."""
    heard, began = _Heard(), time.monotonic()
    process = subprocess.Popen(  # noqa: S603 - the command is what the person asks to run
        list(words),
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    streams = ((process.stdout, True), (process.stderr, False))
    listeners = [threading.Thread(target=heard.listen, args=each, daemon=True) for each in streams]
    try:
        for each in listeners:
            each.start()
        code = _wait(process, heard, out, None if timeout_seconds is None else began + timeout_seconds)
        seconds = time.monotonic() - began
    finally:
        _end(process)
        for each in listeners:
            each.join(ENDING_SECONDS)
    heard.told.take_file(out)
    first = heard.first_at if heard.first_at is not None or not heard.told.by_step else began + seconds
    # One that was written right before the end may be read after it.
    first_seconds = None if first is None else min(first - began, seconds)
    return Outcome(code, seconds, heard.told, first_seconds, tuple(heard.last), timeout_seconds)


def _wait(process: "subprocess.Popen[bytes]", heard: _Heard, out: Path, until: float | None) -> int | None:
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
        if heard.first_at is None and _has_begun(out):
            heard.first_at = time.monotonic()
        if until is not None and time.monotonic() > until:
            return None


def _has_begun(out: Path) -> bool:
    try:
        return out.stat().st_size > 0
    except OSError:
        return False


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Its whole session, processes that it left behind included: first kindly, then not."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except (ProcessLookupError, PermissionError):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(ENDING_SECONDS)
