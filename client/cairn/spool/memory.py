"""Records that are in memory only: they cannot be written just now, or are still being made. Bounded."""

import json
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from cairn.spool.frames import payload

MEMORY_BYTES = 16 * 1024 * 1024
MEMORY_RECORDS = 20_000
NOTHING = b"{}"  # a line that says nothing, in place of a record that could not be made
Record = dict[str, Any]
Later = Callable[[], Record | None]


@dataclass
class Waiting:
    """A record in memory. `later` makes it, for what takes too long to be made in a call."""

    number: int
    body: bytes | None
    later: Later | None = None
    sent: bool = False
    size: int = 4_096  # as it is counted; of one that is not made yet nobody knows

    def __post_init__(self) -> None:
        if self.body is not None:
            self.size = len(self.body)


class Memory:
    """A queue, the oldest first. The writer's lock is held around everything but `made`."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self.lost = 0
        self._warn = warn
        self._queue: deque[Waiting] = deque()
        self._bytes = 0
        self._making = threading.Lock()

    def __len__(self) -> int:
        return len(self._queue)

    def keep(self, waiting: Waiting) -> bool:
        if self._bytes + waiting.size > MEMORY_BYTES or len(self._queue) >= MEMORY_RECORDS:
            self.lost += 1
            self._warn("the memory for records that can be neither written nor sent is full; newer ones are lost.")
            return False
        self._queue.append(waiting)
        self._bytes += waiting.size
        return True

    def put_before(self, older: Iterable[Waiting]) -> None:
        """Records that were written, and that nobody else may have read."""
        again = list(older)
        self._queue.extendleft(reversed(again))
        self._bytes += sum(each.size for each in again)

    def first(self) -> Waiting | None:
        return self._queue[0] if self._queue else None

    def drop_first(self) -> None:
        self._bytes = max(self._bytes - self._queue.popleft().size, 0)

    def unsent(self) -> list[Waiting]:
        return [each for each in self._queue if not each.sent]

    def sent(self, number: int) -> None:
        for each in self._queue:
            if each.number == number:
                each.sent = True
                break
        while self._queue and self._queue[0].sent:
            self.drop_first()

    def made(self, waiting: Waiting) -> bytes:
        """Its JSON. One that cannot be made is lost and told of, and holds up none of those behind it."""
        with self._making:
            if waiting.body is None:
                try:
                    record = waiting.later() if waiting.later is not None else None
                    body = payload(record) if record is not None else NOTHING
                except Exception as fault:  # whatever an object of somebody else's does
                    self.lost += 1
                    self._warn(f"a record could not be made and is lost: {type(fault).__name__}: {fault}")
                    body = NOTHING
                waiting.body = body
            return waiting.body

    def read(self, found: Iterable[Waiting], most: int, without: Collection[str]) -> list[tuple[int, Record]]:
        """Numbers and records of these, at most so many, none of the streams `without`."""
        said: list[tuple[int, Record]] = []
        for each in found:
            record = json.loads(self.made(each))
            if record.get("key") not in without:
                said.append((each.number, record))
            if len(said) == most:
                break
        return said
