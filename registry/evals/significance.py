"""Did a score really change? Tests, their correction for looking at many, and the verdict.

`d` is new minus old on the common scale of registry.evals.normalise, so below zero is always a loss. All p values
are one-sided. scipy.special is imported where an exact tail is needed: scipy.stats would cost 53 MB and 1.2 s.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from registry.evals.verdict_words import Z_95, Shown

ALPHA = 0.05
MARGIN = 0.01  # assumed: one chance-normalised point is the least change that matters
Z_POWER_80 = 0.8416212335729143
Z_TWO_SIDED_95 = 1.959963984540054
DETECTABLE = Z_95 + Z_POWER_80  # 2.4865: standard errors that a change must have to be seen in 80 % of cases

REGRESSED, SUSPECTED, UNCHANGED = "regressed", "suspected", "unchanged"
INCONCLUSIVE, IMPROVED, NOT_COMPARABLE = "inconclusive", "improved", "not_comparable"


@dataclass(frozen=True, slots=True)
class Change:
    """A tested difference. `p_drop` and `p_gain` are the one-sided p values; `detectable` is what 80 % would see."""

    difference: float
    stderr: float
    z: float
    p_drop: float
    p_gain: float
    detectable: float
    method: str


def normal_cdf(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def unpaired(old: float, new: float, old_stderr: float, new_stderr: float) -> Change:
    """z of two independent scores: d / sqrt(SE1^2 + SE2^2)."""
    stderr = math.hypot(old_stderr, new_stderr)
    return from_normal(new - old, stderr, "unpaired z")


def from_normal(difference: float, stderr: float, method: str) -> Change:
    """A difference with a known standard error; where both are zero there is no evidence of a change."""
    z = difference / stderr if stderr > 0 else math.copysign(math.inf, difference) if difference else 0.0
    return Change(difference, stderr, z, normal_cdf(z), normal_cdf(-z), DETECTABLE * stderr, method)


def paired_binary(right_to_wrong: int, wrong_to_right: int, n: int) -> Change:
    """McNemar's exact test on the samples that both answered: b turned wrong, c turned right, of n.

    d = (c - b)/n, SE = sqrt((b + c) - (c - b)^2/n)/sqrt(n(n - 1)); p is the binomial tail of b among b + c.
    """
    from scipy.special import bdtrc

    b, c = right_to_wrong, wrong_to_right
    if n < 2 or b < 0 or c < 0 or b + c > n:
        raise ValueError(f"{b} turned wrong and {c} right cannot be counts of {n} shared samples")
    difference = (c - b) / n
    stderr = math.sqrt((b + c) - (c - b) ** 2 / n) / math.sqrt(n * (n - 1))
    z = difference / stderr if stderr else 0.0
    p_drop = float(bdtrc(b - 1, b + c, 0.5)) if b else 1.0
    p_gain = float(bdtrc(c - 1, b + c, 0.5)) if c else 1.0
    detectable = minimum_detectable_paired((b + c) / n, n)
    return Change(difference, stderr, z, p_drop, p_gain, detectable, "paired, McNemar exact")


def paired_differences(differences: Sequence[float]) -> Change:
    """Paired t of per-sample differences (new - old, larger is better), for samples that are not right or wrong."""
    from scipy.special import stdtr

    n = len(differences)
    if n < 2:
        raise ValueError(f"a paired test needs two shared samples or more, not {n}")
    mean = math.fsum(differences) / n
    stderr = math.sqrt(math.fsum((each - mean) ** 2 for each in differences) / (n - 1) / n)
    if stderr == 0:
        return from_normal(mean, 0.0, "paired t")
    t = mean / stderr
    p_drop, p_gain = float(stdtr(n - 1, t)), float(stdtr(n - 1, -t))
    return Change(mean, stderr, t, p_drop, p_gain, DETECTABLE * stderr, "paired t")


def minimum_detectable_unpaired(p: float, n: int) -> float:
    """The change of a proportion that an unpaired test (one-sided .05, n samples each) sees with power .8."""
    return DETECTABLE * math.sqrt(2 * p * (1 - p) / n)


def minimum_detectable_paired(discordant: float, n: int) -> float:
    """The same for a paired test; `discordant` is the share of samples whose answer changed, either way."""
    return DETECTABLE * math.sqrt(discordant / n)


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """q values in the order given: the false-discovery rate at which each would just be rejected."""
    count = len(p_values)
    q_values = [1.0] * count
    least = 1.0
    by_size = sorted(range(count), key=lambda index: p_values[index], reverse=True)
    for rank, index in zip(range(count, 0, -1), by_size, strict=True):
        least = min(least, p_values[index] * count / rank)
        q_values[index] = least
    return q_values


def verdict(
    change: Change,
    q_drop: float,
    q_gain: float,
    *,
    margin: float | None = MARGIN,
    assumed: bool = False,
    shown: Shown | None = None,
    room: tuple[float, float] | None = None,
) -> tuple[str, str]:
    """(verdict, why). `margin` is None on scales that have no points; `assumed` errors carry only a suspicion.

    In this order: regressed (q <= .05 and a loss of the margin or more), suspected (p <= .05), unchanged (the 90 %
    interval lies within the margin), improved (as regressed, upwards), else inconclusive. The words give figures as
    `shown` does (default: on the common scale); `room`: how far it could (fall, rise) at most, on the common scale.
    """
    shown = shown or Shown(change.difference, change.stderr, in_points=margin is not None)
    found, words = _verdict(change, q_drop, q_gain, margin, assumed, shown, room)
    return found, shown.told(words)


def _verdict(
    change: Change,
    q_drop: float,
    q_gain: float,
    margin: float | None,
    assumed: bool,
    shown: Shown,
    room: tuple[float, float] | None,
) -> tuple[str, str]:
    d, least = change.difference, margin or 0.0
    low, high = d - Z_95 * change.stderr, d + Z_95 * change.stderr
    if d < 0 and d <= -least and q_drop <= ALPHA and not assumed:
        return REGRESSED, f"{shown.moved()} with q = {q_drop:.2g}"
    if d < 0 and change.p_drop <= ALPHA:
        return SUSPECTED, _suspicion(change, q_drop, margin, assumed, shown)
    if d > 0 and d >= least and q_gain <= ALPHA and not assumed:
        return IMPROVED, f"{shown.moved()} with q = {q_gain:.2g}"
    if margin is not None and -margin < low and high < margin:
        return UNCHANGED, f"{shown.interval()}, inside the margin of {shown.margin(margin)}"
    return INCONCLUSIVE, f"{shown.interval()}; {shown.detectable(change.detectable, room)}"


def _suspicion(change: Change, q_drop: float, margin: float | None, assumed: bool, shown: Shown) -> str:
    moved = f"{shown.moved()} with p = {change.p_drop:.2g}"
    if assumed:
        return f"{moved}, but the standard error is assumed"
    if q_drop > ALPHA:
        return f"{moved}, but q = {q_drop:.2g} after correction for the number of comparisons"
    return f"{moved}, less than the margin of {shown.margin(margin or 0.0)}"
