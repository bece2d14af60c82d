"""Points of curves between the call that logs them and the file that keeps them: a list in memory, emptied often.

A call only appends, since some loops take two milliseconds a step. What is in the list when the process is killed is
lost; everything older is on disk.
"""

from collections import deque
from collections.abc import Mapping
from typing import Any

from cairn.numbers import number_to_wire
from cairn.recorder.plain import number
from cairn.spool.curves import TAIL_POINTS

MAX_WAITING = 100_000
Point = tuple[int, Mapping[str, Any]]


class Points:
    """The curves of one attempt."""

    def __init__(self) -> None:
        self._waiting: deque[Point] = deque(maxlen=MAX_WAITING)
        self._counts: dict[str, int] = {}
        self._tails: dict[str, deque[tuple[int, Any]]] = {}
        self.unusable: set[str] = set()

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        self._waiting.append((step, values))

    def is_waiting(self) -> bool:
        return bool(self._waiting)

    def drain(self) -> dict[str, Any] | None:
        """The curves since the last time as a `points` record without its key; None where there is nothing new."""
        curves: dict[str, dict[str, Any]] = {}
        while self._waiting:
            step, values = self._waiting.popleft()
            for name, value in values.items():
                found = number(value)
                if found is None:
                    self.unusable.add(name)
                else:
                    self._add(curves, name, step, number_to_wire(float(found)))
        return {"kind": "points", "curves": curves} if curves else None

    def tail(self) -> dict[str, Any] | None:
        """The last points of every curve, each of them, for the end of the attempt."""
        curves = {
            name: {"first": 0, "steps": [step for step, _ in kept], "values": [value for _, value in kept]}
            for name, kept in self._tails.items()
        }
        return {"kind": "points", "curves": curves, "dense": True} if curves else None

    def _add(self, curves: dict[str, dict[str, Any]], name: str, step: int, value: Any) -> None:
        count = self._counts.get(name, 0)
        curve = curves.setdefault(name, {"first": count, "steps": [], "values": []})
        curve["steps"].append(step)
        curve["values"].append(value)
        self._counts[name] = count + 1
        self._tails.setdefault(name, deque(maxlen=TAIL_POINTS)).append((step, value))
