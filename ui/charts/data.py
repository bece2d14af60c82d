"""What a chart is drawn from: plain values, no knowledge of runs or tables."""

import hashlib
from dataclasses import dataclass
from typing import Literal

# Each kind of mark has one shape, the same on every plot.
MarkKind = Literal["attempt", "checkpoint", "incident", "rollback", "good"]
COLOURS = 7  # Okabe-Ito without yellow (invisible on white); classes c0 to c6 in cairn.css


def colour_of(key: str) -> int:
    """The palette place of a run: from its id alone, so that it is the same on every page and every host."""
    return hashlib.blake2s(key.encode("utf-8", "surrogatepass"), digest_size=2).digest()[0] % COLOURS


@dataclass(frozen=True)
class Point:
    """y None is a gap, NaN and infinities gaps with a cross at the edge; `error` is one standard error.

    `lent` is why the value is not of this very thing, in words; its sign is dashed.
    """

    x: float
    y: float | None
    error: float | None = None
    href: str | None = None
    lent: str = ""


@dataclass(frozen=True)
class Series:
    """One line. `muted` draws what was superseded; `colour` is a palette place (see `colour_of`).

    `label` is what is written at its end where that is not its name; '' where another line goes on from there.
    """

    name: str
    points: tuple[Point, ...]
    colour: int = 0
    muted: bool = False
    label: str | None = None

    @property
    def written(self) -> str:
        return self.name if self.label is None else self.label


@dataclass(frozen=True)
class Mark:
    """Something that happened at x. Checkpoints sit on the axis, the others are lines with a sign on top."""

    kind: MarkKind
    x: float
    label: str
    href: str | None = None


@dataclass(frozen=True)
class Band:
    """A range of x that is uncertain or set apart, such as where an onset may lie."""

    start: float
    end: float
    label: str


@dataclass(frozen=True)
class LineChart:
    """Everything one plot shows. `key` is unique on the page: ids of title and description derive from it."""

    key: str
    title: str
    series: tuple[Series, ...]
    x_label: str = "step"
    y_label: str = ""
    marks: tuple[Mark, ...] = ()
    bands: tuple[Band, ...] = ()
    x_log: bool = False
    y_log: bool = False
