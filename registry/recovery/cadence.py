"""How often to save: what an interruption loses against what saving costs. All times in one unit.

`cost` is the stall of a save, `mtbf` the mean time between failures, `restart` from a failure to training again.
Failures come at any time alike (exponential). Daly's interval (2006) is the one to use: Young's (1974) is its first
term, and within a percent of the exact one wherever saving costs less than the time between failures.
"""

import math
from dataclasses import dataclass


def young(cost: float, mtbf: float) -> float:
    return math.sqrt(2 * cost * mtbf)


def daly(cost: float, mtbf: float) -> float:
    """Running time between two saves; where a save costs more than two failures are apart, one failure's time."""
    _require(cost, mtbf)
    if cost >= 2 * mtbf:
        return mtbf
    share = cost / (2 * mtbf)
    return young(cost, mtbf) * (1 + math.sqrt(share) / 3 + share / 9) - cost


def exact_interval(cost: float, mtbf: float) -> float:
    """The interval at which `overhead` is least: M (1 + W0(-exp(-C/M - 1)))."""
    from scipy.special import lambertw

    _require(cost, mtbf)
    return mtbf * (1 + float(lambertw(-math.exp(-cost / mtbf - 1)).real))


def overhead(interval: float, cost: float, mtbf: float, restart: float = 0.0) -> float:
    """The share of time that saving, lost work and restarting take on top of the training itself."""
    _require(interval, mtbf)
    return mtbf * math.exp(restart / mtbf) * math.expm1((interval + cost) / mtbf) / interval - 1


def overhead_first_order(interval: float, cost: float, mtbf: float, restart: float = 0.0) -> float:
    """The same for rare failures, as the sum of its three parts: C/tau + (tau/2 + R)/M."""
    _require(interval, mtbf)
    return cost / interval + (interval / 2 + restart) / mtbf


def lost_per_failure(interval: float, background: float = 0.0) -> float:
    """Work lost on average; a save that goes on in the background is no help before it has ended."""
    if interval < background:
        raise ValueError("a save begins before the last one has ended")
    return interval / 2 + background


@dataclass(frozen=True, slots=True)
class TwoTiers:
    """Intervals of light saves and of archives, `light_per_archive` of the former for one of the latter."""

    light: float
    archive: float
    light_per_archive: int
    overhead: float


def two_tiers(light_cost: float, archive_cost: float, mtbf: float, share: float) -> TwoTiers:
    """`share` of the failures destroy the light tier as well (Benoit et al. 2017)."""
    _require(min(light_cost, archive_cost), mtbf)
    if not 0 < share < 1:
        raise ValueError(f"{share} is no share of failures")
    light, archive = young(light_cost, mtbf / (1 - share)), young(archive_cost, mtbf / share)
    lost = math.sqrt(2 * light_cost * (1 - share) / mtbf) + math.sqrt(2 * archive_cost * share / mtbf)
    return TwoTiers(light, archive, max(1, round(archive / light)), lost)


def _require(positive: float, mtbf: float) -> None:
    if not (positive > 0 and mtbf > 0 and math.isfinite(positive) and math.isfinite(mtbf)):
        raise ValueError("times must be above 0 and finite")
