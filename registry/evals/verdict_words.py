"""A tested difference in words, in the units and the orientation of the figures that stand beside them.

The tests run on the common scale, where below 0 is always a loss and chance is 0. A reader sees the benchmark's own
figures, so the words must give those: of mmlu, 0.0075 where the common scale has a hundredth; of a perplexity, a rise.
"""

import math
from dataclasses import dataclass

Z_95 = 1.6448536269514722  # one-sided .05, and the two-sided 90 % interval
MOST_DECIMALS = 6


@dataclass(frozen=True, slots=True)
class Shown:
    """`difference` and `stderr` as they are shown; `per_unit`: how many shown units one of the common scale is.

    `what` names what moved, where that is not the score itself; `note` is said first. `in_points`: as hundredths.
    """

    difference: float
    stderr: float
    per_unit: float = 1.0
    what: str = ""
    note: str = ""
    in_points: bool = False

    def moved(self) -> str:
        """'fell by 0.049', 'its distance from 0.5 rose by 0.031'."""
        verb = "fell" if self.difference < 0 else "rose"
        return f"{self.what} {verb} by {self._written(abs(self.difference))}".lstrip()

    def interval(self) -> str:
        low, high = (self.difference + side * Z_95 * self.stderr for side in (-1, 1))
        of = f"the change of {self.what}" if self.what else "the difference"
        return f"the 90 % interval of {of} is {self._end(low)} to {self._end(high)}{self._unit}"

    def size(self, common: float) -> str:
        """A size that is given on the common scale."""
        return self._written(common * self.per_unit)

    def margin(self, common: float) -> str:
        """The same to two digits: three quarters of a point are not 0.8."""
        return f"{common * self.per_unit * self._factor:.2g}{self._unit}"

    def detectable(self, common: float, room: tuple[float, float] | None) -> str:
        """What would be seen; `room` (loss, gain) is how far the score could move at most, on the common scale."""
        loss, gain = room if room is not None else (math.inf, math.inf)
        if common > max(loss, gain):
            return "with so few samples no change that is possible on this scale would be seen reliably"
        size = self.size(common)
        if common > loss:
            return f"only a gain of {size} would be seen reliably, and the score has no room for such a loss"
        if common > gain:
            return f"only a loss of {size} would be seen reliably, and the score has no room for such a gain"
        return f"only a change of {size} would be seen reliably"

    def told(self, words: str) -> str:
        return f"{self.note}: {words}" if self.note else words

    @property
    def _factor(self) -> float:
        return 100.0 if self.in_points else 1.0

    @property
    def _unit(self) -> str:
        return " points" if self.in_points else ""

    def _written(self, value: float) -> str:
        return f"{self._number(value)}{self._unit}"

    def _end(self, value: float) -> str:
        return f"{'-' if value < 0 else '+'}{self._number(abs(value))}"

    def _number(self, value: float) -> str:
        """A point to its tenth; else to the second digit of the standard error, as the field beside it is read."""
        if self.in_points:
            return f"{100 * value:.1f}"
        if not 0 < self.stderr < math.inf:
            return f"{value:.3g}"
        decimals = 1 - math.floor(math.log10(self.stderr))
        return f"{value:.{min(max(decimals, 0), MOST_DECIMALS)}f}" if decimals <= MOST_DECIMALS else f"{value:.3g}"
