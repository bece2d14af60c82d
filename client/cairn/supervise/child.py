"""The job itself: started, its output passed through as it is, signals passed on, its end waited for.

Where our output is a terminal the job gets one too (a pseudo-terminal in raw mode, so that not a byte is changed).
It runs in a session of its own: what the terminal sends (Ctrl-C) reaches it once, through us.
"""

import contextlib
import fcntl
import os
import pty
import select
import signal
import subprocess
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

CHUNK: Final = 1 << 16
DRAIN_SECONDS: Final = 2.0  # after the job's end: a process that it left behind may hold its output open
LOOK_SECONDS: Final = 0.5
# What the terminal would send to all processes of the job goes to all, anything else to the job alone.
TO_ALL: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
TO_THE_JOB: Final = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
TO_END_IT: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
Heard = Callable[[int, bytes], None]


@dataclass(frozen=True)
class Ended:
    """How the job ended: by itself with a code, or by a signal. `fault`: why it could not be started."""

    exit_code: int | None
    signal: int | None
    fault: str = ""

    @property
    def code(self) -> int:
        """As a shell tells it: 128 and the signal's number where a signal ended it."""
        return 128 + self.signal if self.signal is not None else self.exit_code or 0


class Signals:
    """Passes the signals that we receive on to the job, and remembers those that ask for its end.

    Those that were ignored when we began (nohup) stay ignored, for the job as well.
    """

    def __init__(self) -> None:
        self.asked: int | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._before: dict[int, Any] = {}
        self._resized: Callable[[], None] = lambda: None

    def __enter__(self) -> "Signals":
        for number in (*TO_ALL, *TO_THE_JOB, signal.SIGTSTP, signal.SIGWINCH):
            if signal.getsignal(number) != signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._pass_on)
        return self

    def ended(self) -> bool:
        """Whether somebody has asked for the end; it may be so from one moment to the next."""
        return self.asked is not None

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextlib.contextmanager
    def to(self, process: "subprocess.Popen[bytes]", resized: Callable[[], None]) -> Iterator[None]:
        self._process, self._resized = process, resized
        if self.asked is not None:  # it came while the job was being started
            self._send(self.asked)
        try:
            yield
        finally:
            self._process = None

    def sleep(self, seconds: float) -> None:
        """Waits; a signal that asks for the end cuts it short."""
        until = time.monotonic() + seconds
        while self.asked is None and time.monotonic() < until:
            time.sleep(min(0.2, max(until - time.monotonic(), 0)))

    def _pass_on(self, number: int, _frame: FrameType | None) -> None:
        if number in TO_END_IT:
            self.asked = number
        if number == signal.SIGWINCH:
            self._resized()
        if number == signal.SIGTSTP:
            self._stop_and_go_on()
        else:
            self._send(number)

    def _send(self, number: int) -> None:
        process = self._process
        if process is None or process.poll() is not None:
            return
        with contextlib.suppress(OSError):
            if number in TO_ALL or number in (signal.SIGSTOP, signal.SIGCONT):
                os.killpg(process.pid, number)
            else:
                os.kill(process.pid, number)

    def _stop_and_go_on(self) -> None:
        self._send(signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        self._send(signal.SIGCONT)


def run_child(command: Sequence[str], environ: Mapping[str, str], signals: Signals, heard: Heard) -> Ended:
    """Runs the job to its end. `heard(1 or 2, bytes)` is told everything that it writes. Raises OSError."""
    streams = _Streams()
    try:
        process = subprocess.Popen(  # noqa: S603 - the job is what the person asks to run
            list(command),
            env=dict(environ),
            stdout=streams.writing[1],
            stderr=streams.writing[2],
            start_new_session=True,
        )
    except BaseException:
        streams.close()
        raise
    streams.close_writing()
    try:
        with signals.to(process, streams.resize):
            _pass_through(process, streams, heard)
            code = process.wait()
    finally:
        streams.close()
    return Ended(None, -code) if code < 0 else Ended(code, None)


class _Streams:
    """Our ends and the job's ends of its output: one pseudo-terminal for what is a terminal here, else a pipe each."""

    def __init__(self) -> None:
        self.reading: dict[int, int] = {}  # descriptor to stream
        self.writing: dict[int, int] = {}  # stream to descriptor
        self._terminal: int | None = None
        shared: int | None = None
        for stream in (1, 2):
            if not _is_terminal(stream):
                ours, theirs = os.pipe()
                self.reading[ours], self.writing[stream] = stream, theirs
            elif shared is not None:
                self.writing[stream] = shared
            else:
                ours, shared = pty.openpty()
                tty.setraw(shared)
                self.reading[ours], self.writing[stream] = stream, shared
                self._terminal, self._like = ours, stream
                self.resize()

    def resize(self) -> None:
        if self._terminal is not None:
            with contextlib.suppress(OSError):
                size = fcntl.ioctl(self._like, termios.TIOCGWINSZ, b"\0" * 8)
                fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, size)

    def close_writing(self) -> None:
        for descriptor in set(self.writing.values()):
            os.close(descriptor)
        self.writing = {}

    def close_reading(self, descriptor: int) -> None:
        del self.reading[descriptor]
        if descriptor == self._terminal:
            self._terminal = None
        os.close(descriptor)

    def close(self) -> None:
        self.close_writing()
        for descriptor in list(self.reading):
            self.close_reading(descriptor)


def _pass_through(process: "subprocess.Popen[bytes]", streams: _Streams, heard: Heard) -> None:
    broken: set[int] = set()  # ours that take no more: the job goes on all the same
    ended_at: float | None = None
    late = 0  # bytes that were read when the time was over
    while streams.reading:
        if ended_at is None and process.poll() is not None:
            ended_at = time.monotonic()
        is_over = ended_at is not None and time.monotonic() - ended_at > DRAIN_SECONDS
        wait = LOOK_SECONDS if ended_at is None else 0.0 if is_over else 0.05
        ready = select.select(list(streams.reading), [], [], wait)[0]
        # Where our own reader is slow, the job's last words stand there still: of each stream what a pipe holds.
        if is_over and (not ready or late >= 2 * CHUNK):
            return
        for descriptor in ready:
            chunk = _read(descriptor)
            late += len(chunk) if is_over else 0
            if not chunk:
                streams.close_reading(descriptor)
                continue
            stream = streams.reading[descriptor]
            heard(stream, chunk)
            if stream not in broken and not _write_all(stream, chunk):
                broken.add(stream)


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, CHUNK)
    except OSError:  # a pseudo-terminal whose other end was closed
        return b""


def _write_all(descriptor: int, chunk: bytes) -> bool:
    """Whether it could be written: the reader may be gone, the disk full."""
    view = memoryview(chunk)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            select.select([], [descriptor], [], 1.0)
        except OSError:
            return False
    return True


def _is_terminal(stream: int) -> bool:
    try:
        return os.isatty(stream)
    except OSError:
        return False
