"""The probability of each gap, given scores; which point to ask next; how many items that takes. Pure arithmetic.

Points 0 (good) to m (bad) have gaps 0 to m - 1; gap k lies between point k and point k + 1. A score is Gaussian around
the good level up to the gap and around the bad level after it.

A point that nobody evaluated is preferred while its answer is open. When only evaluated points are open, the one
nearest one half is asked again with twice the items: the same items would give the same answer. Over 64 gaps at
d' = 4 this takes 6.6 evaluations (6.9 counting items) and is right in 99 %; to ask every point once only takes 18 and
is right in 95 %, the classic search without probabilities 6 and 87.5 %.
"""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SURE: Final = 0.95  # the probability of one gap at which the search ends
SEPARATION: Final = 4.0  # d': standard errors between the two levels that an evaluation is sized for
OPEN: Final = 0.02  # a point is open while its probability of being bad lies between this and one minus it
ENLARGED: Final = 2  # times the items, where a point is asked again
LEAST_STDERR: Final = 0.02  # of the drop: no score is worth more than d' = 50

Gaps = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was measured at a point: its distance from the good level, with the standard error; `items` behind it.

    `repeated`: it was measured again on no more items, so asking once more would tell nothing.
    """

    delta: float
    stderr: float
    items: int | None
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    point: int
    items: int
    probability_bad: float


def items_for(drop: float, discordance: float) -> int:
    """Items for d' = 4: n = psi (4/drop)^2, where psi is the share of items whose answer changes between two
    checkpoints. 960 for a drop of .05 and psi = .15, 2667 for .03."""
    return max(2, math.ceil(discordance * (SEPARATION / drop) ** 2 - 1e-9))


def gap_probabilities(gaps: int, drop: float, seen: Mapping[int, Seen]) -> Gaps:
    """The posterior over the gaps, uniform before anything is seen. `drop` > 0: the bad level lies that far below."""
    log = np.zeros(gaps)
    for point, each in seen.items():
        stderr = max(each.stderr, LEAST_STDERR * drop)
        good, bad = (-0.5 * ((each.delta - level) / stderr) ** 2 for level in (0.0, -drop))
        log += np.where(np.arange(gaps) < point, bad, good)
    weights = np.exp(log - log.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)


def bad_probabilities(gaps: Gaps) -> Gaps:
    """For each point, the probability that it is bad already: 0 for the first, 1 for the last."""
    return np.concatenate([[0.0], np.minimum(np.cumsum(gaps), 1.0)])


def next_ask(
    gaps: Gaps, seen: Mapping[int, Seen], can_ask: Collection[int], items: int, most_items: int | None
) -> Ask | None:
    """What to evaluate next; None where the search is over, or no evaluation that can be made would tell more."""
    if gaps.max() >= SURE:
        return None
    bad = bad_probabilities(gaps)
    inside = [point for point in can_ask if 0 < point < len(gaps)]
    first = min(items, most_items) if most_items is not None else items
    fresh = [point for point in inside if point not in seen and OPEN < bad[point] < 1 - OPEN]
    if fresh:
        point = min(fresh, key=lambda each: (abs(bad[each] - 0.5), each))
        return Ask(point, first, float(bad[point]))
    again = [
        point
        for point in inside
        if point in seen and OPEN < bad[point] < 1 - OPEN and _can_grow(seen[point], first, most_items)
    ]
    if not again:
        return None
    point = min(again, key=lambda each: (abs(bad[each] - 0.5), each))
    grown = ENLARGED * (seen[point].items or first)
    return Ask(point, grown if most_items is None else min(grown, most_items), float(bad[point]))


def _can_grow(seen: Seen, first: int, most_items: int | None) -> bool:
    return not seen.repeated and (most_items is None or (seen.items or first) < most_items)


def credible_set(gaps: Gaps) -> list[int]:
    """The shortest stretch of neighbouring gaps that holds 95 %; of several as short, the most probable."""
    total = np.concatenate([[0.0], np.cumsum(gaps)])
    best = (len(gaps), -1.0, 0)
    for first in range(len(gaps)):
        last = int(np.searchsorted(total, total[first] + SURE - 1e-12))
        if last <= len(gaps):
            best = min(best, (last - first, -float(total[last] - total[first]), first))
    return list(range(best[2], best[2] + best[0]))
