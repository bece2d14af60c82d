"""Whether a checkpoint may be loaded in another layout, for those who filter by it: no, or yes and with which words.

What each format allows is `registry.layout`; here a recorded layout is put to it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from registry.layout.cells import Verdict
from registry.layout.resharding import CALLED, NOT_SAME_SUMS, Compatibility, compatibility
from registry.layout.spec import DEGREES, Degrees, Saved, describe
from registry.models import Layout
from registry.snapshots import LayoutSpec
from registry.types import PieceName, Presence

ALL_THERE: Final[Mapping[PieceName, Presence]] = dict.fromkeys(PieceName, Presence.PRESENT)
WEIGHTS: Final = (PieceName.WEIGHTS,)
TRAINING: Final = (PieceName.WEIGHTS, PieceName.OPTIMIZER)


@dataclass(frozen=True, slots=True)
class Fit:
    """`feasible` False excludes; `words` says what must be done or why it cannot be; '' where nothing changes."""

    feasible: bool
    words: str


def fit(saved: Layout | None, format_name: str | None, target: LayoutSpec, *, weights_only: bool) -> Fit:
    """How a checkpoint fits the layout that is there now; degrees that the target leaves out stay as saved.

    The data position never excludes here: where it does not follow, data can be skipped by count. Raises
    ContradictoryLayout.
    """
    degrees = degrees_of(target)
    if degrees == Degrees():
        return Fit(True, "")
    found = compatibility(saved_of(saved, format_name), degrees, ALL_THERE)
    return judged(found, WEIGHTS if weights_only else TRAINING)


def judged(found: Compatibility, needed: tuple[PieceName, ...]) -> Fit:
    """The compatibility of the needed pieces as one yes or no."""
    obstacle = found.obstacle(needed)
    if obstacle is not None:
        name, why = obstacle
        return Fit(False, _sentence(f"{CALLED[name]} cannot be loaded: {why.words}", found.told))
    if not found.changes:
        return Fit(True, "")
    worst = found.worst(needed)
    if worst is Verdict.EXACT:
        return Fit(True, f"the layout changes ({found.told}): by its format the same values; {NOT_SAME_SUMS}")
    if worst is Verdict.CONVERTED:
        name = next(each for each in needed if found.pieces[each].verdict is worst)
        return Fit(True, f"the layout changes ({found.told}): {found.pieces[name].words}")
    return Fit(True, f"the layout changes ({found.told}): drill it before relying on it")


def _sentence(text: str, told: str) -> str:
    return f"{text} ({told})" if told else text


def degrees_of(spec: LayoutSpec) -> Degrees:
    return Degrees(**{name: getattr(spec, name) for name in DEGREES})


def saved_of(layout: Layout | LayoutSpec | None, format_name: str | None) -> Saved:
    """The facts of a recorded layout, as a row or as values."""
    if layout is None:
        return describe(format_name, None, Degrees())
    extra = layout.extra if isinstance(layout, Layout) else json.dumps(dict(layout.extra), default=str)
    degrees = Degrees(**{name: getattr(layout, name) for name in DEGREES})
    return _described(format_name, layout.sharding, degrees, extra)


@lru_cache(maxsize=256)
def _described(format_name: str | None, sharding: str | None, degrees: Degrees, extra: str | None) -> Saved:
    """Thousands of checkpoints of one run have one layout."""
    return describe(format_name, sharding, degrees, json.loads(extra) if extra else {})
