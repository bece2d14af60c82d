"""The end of what a job wrote, in whole lines, bounded in memory however much it writes."""

import threading
from collections import deque
from typing import Final

LIMIT_BYTES: Final = 1024 * 1024
LINE_BYTES: Final = 64 * 1024  # a longer line is cut into several


class Tail:
    """Lines of several streams in the order in which they ended. Threads may share it."""

    def __init__(self, limit: int = LIMIT_BYTES) -> None:
        self._limit = limit
        self._lines: deque[bytes] = deque()
        self._bytes = 0
        self._written = 0  # lines ever ended
        self._open: dict[int, bytes] = {}
        self._lock = threading.Lock()

    def add(self, stream: int, chunk: bytes) -> None:
        """What a stream wrote next. A carriage return ends a line too: progress bars know no other end."""
        with self._lock:
            *ended, rest = (
                (self._open.get(stream, b"") + chunk).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            )
            while len(rest) > LINE_BYTES:
                ended.append(rest[:LINE_BYTES])
                rest = rest[LINE_BYTES:]
            self._open[stream] = rest
            for line in ended:
                self._keep(line)

    def lines(self) -> list[str]:
        """Everything that is kept, the unfinished lines last."""
        with self._lock:
            kept = [*self._lines, *(rest for rest in self._open.values() if rest)]
        return [line.decode("utf-8", "replace") for line in kept]

    def after(self, position: int) -> tuple[int, list[str]]:
        """(the position now, the lines since `position`, as far as they are kept)."""
        with self._lock:
            fresh = min(self._written - position, len(self._lines))
            kept = [self._lines[at] for at in range(len(self._lines) - fresh, len(self._lines))]
            return self._written, [line.decode("utf-8", "replace") for line in kept]

    def _keep(self, line: bytes) -> None:
        self._lines.append(line)
        self._written += 1
        self._bytes += len(line) + 1
        while self._bytes > self._limit and len(self._lines) > 1:
            self._bytes -= len(self._lines.popleft()) + 1
