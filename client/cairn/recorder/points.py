"""Points of curves between the call that logs them and the file that keeps them: a list in memory, emptied often.

A call only appends, since some loops take two milliseconds a step. The background writes what is in the list four times
a second, and a save never stands on disk before the points that were logged before it: a process that is killed loses
points of its last half second, and none that are older than a save of which something is on disk.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from cairn.numbers import number_to_wire
from cairn.recorder.held import Held
from cairn.recorder.names import curve_name, now
from cairn.recorder.plain import number
from cairn.spool.curves import TAIL_POINTS
from cairn.spool.writer import SpoolWriter

MAX_WAITING = 100_000
MAX_NAMES = 10_000
QUICK_VALUES = 200  # 0.3 ms of work: what a call may write by itself, or wait for while the background does
Point = tuple[int, dict[str, Any]]


class Points:
    """The curves of one attempt (`key`), on their way to the spool."""

    def __init__(self, key: str, writer: SpoolWriter, warn: Callable[[str], None]) -> None:
        self._key, self._writer, self._warn = key, writer, warn
        self._waiting: deque[Point] = deque(maxlen=MAX_WAITING)
        self._tails: dict[str, deque[tuple[int, Any]]] = {}
        self._counts: dict[str, int] = {}
        self._names: dict[Any, str] = {}  # of the curves, as they were said
        self._writing = threading.Lock()  # who takes points writes them before the next takes any
        self._fresh = 0  # values since the background was last told of them
        self._promised = 0  # records in the writer's memory that are to be made of what waits here

    def add(self, step: int, values: dict[str, Any]) -> None:
        """Keeps the numbers of a step; the mapping is ours from now on."""
        self._waiting.append((step, values))
        self._fresh += len(values)
        if self._fresh >= QUICK_VALUES // 2:  # so many that the next save could not write them by itself any more, soon
            self._fresh = 0
            self._writer.is_due.set()

    def is_waiting(self) -> bool:
        """Whether some are in no record yet; those that are just being written count."""
        return bool(self._waiting) or self._writing.locked()

    def write(self) -> None:
        """Writes what was logged, in parts so small that a call may wait for one. May wait for a GPU."""
        self._read_held()
        left = len(self._waiting)
        while left > 0:
            with self._writing:
                taken = [] if self._promised else self._take(QUICK_VALUES)
                self._put(taken)
            if not taken:
                return
            left -= len(taken)

    def write_before(self, record: dict[str, Any]) -> bool:
        """In a call: writes what was logged and then the record, at once. Whether both are on disk; raises ValueError
        or TypeError for a record that is not plain JSON."""
        with self._writing:
            logged = self._logged()
            try:
                return self._writer.append(*logged, record)
            except Exception:
                self._writer.append(*logged)  # nothing was kept, and these are nowhere else any more
                raise

    def write_first(self) -> None:
        """In a call that records what takes its time to be made: writes what was logged."""
        with self._writing:
            if logged := self._logged():
                self._writer.append(*logged)

    def write_tail(self) -> None:
        """At the end of the attempt: writes what was logged, and the last points of every curve, each of them."""
        self.write_first()
        if self._promised:
            self._writer.append_later(self._tail)
        elif (tail := self._tail()) is not None:
            self._writer.append(tail)

    # How

    def _logged(self) -> list[dict[str, Any]]:
        """The record of what was logged, where there is some. What would take too long, since it is much or on a GPU,
        gets its place in the writer's memory instead; what the call records then waits behind it."""
        if self._waiting and not self._promised and self._is_quick():
            record = self._record(self._take(QUICK_VALUES))
            return [] if record is None else [record]
        if self._waiting and self._writer.append_later(self._made):
            self._promised += 1
        return []

    def _is_quick(self) -> bool:
        if len(self._waiting) > QUICK_VALUES:
            return False
        values = [value for _, each in self._waiting for value in each.values()]
        return len(values) <= QUICK_VALUES and not any(type(value) is Held for value in values)

    def _read_held(self) -> None:
        """Numbers of a GPU are read before anybody is made to wait for them."""
        for _, values in list(self._waiting):
            for name, value in values.items():
                if type(value) is Held:
                    values[name] = value.read()

    def _take(self, most: float) -> list[Point]:
        """The oldest, about as many as have `most` values; none from a GPU that is not read."""
        taken: list[Point] = []
        while self._waiting and most > 0 and not any(type(value) is Held for value in self._waiting[0][1].values()):
            taken.append(self._waiting.popleft())
            most -= len(taken[-1][1])
        return taken

    def _made(self) -> dict[str, Any] | None:
        """The record that was promised. Nobody else takes points as long as one is."""
        try:
            self._read_held()
            return self._record(self._take(math.inf))
        finally:
            with self._writing:
                self._promised -= 1

    def _put(self, taken: list[Point]) -> None:
        if (record := self._record(taken)) is not None:
            self._writer.append(record)

    def _record(self, taken: list[Point]) -> dict[str, Any] | None:
        curves: dict[str, dict[str, Any]] = {}
        for step, values in taken:
            for said, value in values.items():
                if (name := self._names.get(said)) is None:
                    name = self._name(said)
                if not name:
                    continue
                if (found := number(value)) is None:
                    self._warn(f"{name!r:.100} was logged with a value that is no number; it is left out.")
                    continue
                curve = curves.get(name)
                if curve is None:
                    curve = curves[name] = {"first": self._counts.get(name, 0), "steps": [], "values": []}
                curve["steps"].append(step)
                curve["values"].append(number_to_wire(float(found)))
        for name, curve in curves.items():
            self._counts[name] = curve["first"] + len(curve["steps"])
            tail = self._tails.setdefault(name, deque(maxlen=TAIL_POINTS))
            tail.extend(zip(curve["steps"], curve["values"], strict=True))
        return self._named({"curves": curves})

    def _name(self, said: Any) -> str:
        """The curve that is meant; '' where nothing of its name can be shown. Said once of each."""
        name, shown = curve_name(said), f"{said!r:.100}" if isinstance(said, str) else f"a {type(said).__name__}"
        if not name:
            self._warn(f"{shown} is no name of a curve; what was logged under it is left out.")
        elif name != said:
            self._warn(f"the curve {shown} is recorded as {name!r:.100}.")
        if len(self._names) < MAX_NAMES:
            self._names[said] = name
        return name

    def _tail(self) -> dict[str, Any] | None:
        curves: Mapping[str, Any] = {
            name: {"first": 0, "steps": [step for step, _ in kept], "values": [value for _, value in kept]}
            for name, kept in self._tails.items()
        }
        return self._named({"curves": curves, "dense": True})

    def _named(self, record: dict[str, Any]) -> dict[str, Any] | None:
        return {"kind": "points", **record, "key": self._key, "t": now()} if record["curves"] else None
