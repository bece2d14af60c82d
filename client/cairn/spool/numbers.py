"""Which numbers of a spool the service has answered for: ranges, so that a gap costs no memory."""

import math
from bisect import bisect_right


class Numbers:
    """A set of whole numbers from 1, added mostly in order."""

    def __init__(self) -> None:
        self._ranges: list[tuple[int, float]] = []  # first and last, ascending, never touching each other

    def add(self, number: int) -> None:
        ranges = self._ranges
        at = bisect_right(ranges, (number, math.inf))
        if at and ranges[at - 1][1] >= number:
            return
        first, last = number, float(number)
        if at < len(ranges) and ranges[at][0] == number + 1:
            last = ranges.pop(at)[1]
        if at and ranges[at - 1][1] == number - 1:
            at -= 1
            first = ranges.pop(at)[0]
        ranges.insert(at, (first, last))

    @property
    def through(self) -> int:
        """Every number up to this one is there."""
        ranges = self._ranges
        return int(ranges[0][1]) if ranges and ranges[0][0] == 1 else 0

    def __len__(self) -> int:
        return sum(int(last) - first + 1 for first, last in tuple(self._ranges))
