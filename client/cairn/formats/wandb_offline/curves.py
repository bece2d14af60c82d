"""Curves of a history of any length, gathered in bounded memory: as many points as a plot can show.

Steps fall into equal stretches whose width is a power of two and doubles as the curve grows. Of each stretch the
first, smallest, largest and last point stay, so that spikes are seen, and the first that is not finite. Points at
steps of checkpoints stay exactly.
"""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

MAX_STRETCHES = 500
MAX_CURVES = 200
_FIRST = ("loss", "lr", "learning_rate", "grad_norm", "tokens")
Point = tuple[int, float]


@dataclass
class _Stretch:
    first: Point
    last: Point
    least: Point | None = None
    most: Point | None = None
    odd: Point | None = None  # the first that is not finite

    @classmethod
    def of(cls, point: Point) -> "_Stretch":
        return cls(point, point, point, point) if math.isfinite(point[1]) else cls(point, point, odd=point)

    def join(self, later: "_Stretch") -> None:
        self.last = later.last
        if later.least and (self.least is None or later.least[1] < self.least[1]):
            self.least = later.least
        if later.most and (self.most is None or later.most[1] > self.most[1]):
            self.most = later.most
        self.odd = self.odd or later.odd

    def points(self) -> Iterator[Point]:
        yield from (each for each in (self.first, self.least, self.most, self.odd, self.last) if each is not None)


@dataclass
class Curve:
    """One curve. Of points at one step the last one counts; a step that goes back is counted in `backwards`."""

    kept_steps: Collection[int] = ()
    backwards: int = 0
    _width: int = 1
    _stretches: dict[int, _Stretch] = field(default_factory=dict)
    _exact: dict[int, float] = field(default_factory=dict)
    _waiting: Point | None = None

    def add(self, step: int, value: float) -> None:
        if self._waiting is not None and step <= self._waiting[0]:
            if step < self._waiting[0]:
                self.backwards += 1
                return
            self._waiting = None
        if self._waiting is not None:
            self._settle(self._waiting)
        self._waiting = (step, value)

    def points(self) -> tuple[list[int], list[float]]:
        """Steps, ascending, and as many values."""
        if self._waiting is not None:
            self._settle(self._waiting)
            self._waiting = None
        found = {step: value for each in self._stretches.values() for step, value in each.points()} | self._exact
        steps = sorted(found)
        return steps, [found[step] for step in steps]

    def _settle(self, point: Point) -> None:
        if point[0] in self.kept_steps:
            self._exact[point[0]] = point[1]
        self._put(point[0] // self._width, _Stretch.of(point))
        while len(self._stretches) > MAX_STRETCHES:
            self._width *= 2
            before, self._stretches = self._stretches, {}
            for number, stretch in before.items():
                self._put(number // 2, stretch)

    def _put(self, number: int, stretch: _Stretch) -> None:
        known = self._stretches.get(number)
        if known is None:
            self._stretches[number] = stretch
        else:
            known.join(stretch)


class Curves:
    """The curves of one run, by name. Beyond MAX_CURVES those that say most of a training push others out."""

    def __init__(self, kept_steps: Collection[int] = ()) -> None:
        self._kept_steps = kept_steps
        self._curves: dict[str, Curve] = {}
        self.left_out: set[str] = set()

    def add(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            curve = self._curves.get(name)
            if curve is None and name not in self.left_out:
                curve = self._begin(name)
            if curve is not None:
                curve.add(step, value)

    def _begin(self, name: str) -> Curve | None:
        if len(self._curves) >= MAX_CURVES:
            lesser = next((each for each in reversed(self._curves) if not says_much(each)), None)
            if not says_much(name) or lesser is None:
                if len(self.left_out) < 10_000:
                    self.left_out.add(name)
                return None
            del self._curves[lesser]
            self.left_out.add(lesser)
        return self._curves.setdefault(name, Curve(self._kept_steps))

    def items(self) -> Iterator[tuple[str, Curve]]:
        yield from self._curves.items()


def says_much(name: str) -> bool:
    """Whether a curve says how a training goes, and not how a machine does."""
    return not name.startswith("system/") and any(word in name.rpartition("/")[2] for word in _FIRST)
