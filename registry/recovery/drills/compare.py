"""Whether the losses of a drill are those of a training that went on: against what is recorded, and a cold start.

Pure functions. The first loss after a load tells only that the weights are there; what the optimizer did shows from the
second on, so that fewer than three equal losses prove nothing exact.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import Final

from registry.recovery.drills.shapes import FAILED, NOT_TRIED, PASSED, Step

EXACT_STEPS: Final = 3
LEAST_DIGITS: Final = 4  # of a printed loss, to be held against one with more
NOISE_POINTS: Final = 8  # below, the noise is not measured but assumed
ASSUMED_NOISE: Final = 0.01  # [assumed] of the loss, where the curve has too few points to tell
LEAST_NOISE: Final = 1e-4  # [assumed] of the loss: what another order of sums may change
FIRST_LOSSES: Final = 3  # that tell a cold start


@dataclass(frozen=True, slots=True)
class Compared:
    """One comparison in a word and in a sentence. `equal`: every loss is the recorded one; None: too few to say."""

    check: str
    words: str
    equal: bool | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """The run's own loss. `after`: by step, beyond the checkpoint; `around`: the points about it, in order of steps;
    `first`: those the run began with. `source` says whose the continuation is."""

    after: Mapping[int, float]
    around: Sequence[float]
    first: Sequence[float]
    source: str = ""
    at: float | None = None  # the loss at the checkpoint


def equal_as_printed(one: float, other: float) -> bool:
    """The same number, up to the precision of a 32-bit float or to the digits of the one that was printed shorter."""
    if one == other or (math.isnan(one) and math.isnan(other)):
        return True
    if not (math.isfinite(one) and math.isfinite(other)):
        return False
    if abs(one - other) <= 2**-23 * max(abs(one), abs(other)) / 2:
        return True
    short, long = sorted((one, other), key=_digits)
    if _digits(short) < LEAST_DIGITS:
        return False
    decimals = len(repr(short).partition("e")[0].partition(".")[2])
    return "e" not in repr(short) and round(long, decimals) == short


def _digits(number: float) -> int:
    mantissa = repr(abs(number)).partition("e")[0].replace(".", "")
    return len(mantissa.strip("0"))


def noise_of(values: Sequence[float]) -> tuple[float, bool]:
    """(the spread of a curve from one point to the next, without its trend; whether that is measured)."""
    known = [value for value in values if math.isfinite(value)]
    level = abs(median(known)) if known else 1.0
    if len(known) < NOISE_POINTS:
        return ASSUMED_NOISE * level, False
    rises = [later - earlier for earlier, later in pairwise(known)]
    trend = median(rises)
    spread = 1.4826 * median(abs(rise - trend) for rise in rises) / math.sqrt(2)
    return max(spread, LEAST_NOISE * level), True


def compare_continuation(losses: Sequence[Step], recorded: Recorded, tolerance: float) -> Compared:
    """The drill's losses against those recorded at the same steps: all equal, else near enough on average.

    The mean deviation of k steps may be `tolerance` x noise x sqrt(2/k), their root mean square `tolerance` x noise x
    sqrt(2): what another order of the same data would give.
    """
    if not losses:
        return Compared(NOT_TRIED, "the drill wrote no losses")
    if bad := next((each for each in losses if not math.isfinite(each.loss)), None):
        return Compared(FAILED, f"the loss at step {bad.step} is not finite", False)
    if not recorded.after:
        return Compared(NOT_TRIED, "the run has no recorded loss after the checkpoint")
    pairs = [(each.loss, recorded.after[each.step]) for each in losses if each.step in recorded.after]
    pairs = [(own, other) for own, other in pairs if math.isfinite(other)]
    if not pairs:
        return Compared(NOT_TRIED, f"no loss of the drill is of a step that {recorded.source} recorded")
    count = len(pairs)
    steps = f"{count} step{'' if count == 1 else 's'}"
    if all(equal_as_printed(own, other) for own, other in pairs):
        few = "" if count >= EXACT_STEPS else "; too few to call it exact"
        return Compared(PASSED, f"the losses of {steps} equal those of {recorded.source}{few}", few == "" or None)
    return _near(pairs, steps, recorded, tolerance)


def _near(pairs: Sequence[tuple[float, float]], steps: str, recorded: Recorded, tolerance: float) -> Compared:
    noise, measured = noise_of(recorded.around)
    apart = [own - other for own, other in pairs]
    mean, spread = fmean(apart), math.sqrt(fmean(each * each for each in apart))
    mean_limit, spread_limit = tolerance * noise * math.sqrt(2 / len(apart)), tolerance * noise * math.sqrt(2)
    near = abs(mean) <= mean_limit and spread <= spread_limit
    how = "noise" if measured else "assumed noise"
    told = (
        f"over {steps} the losses are {abs(mean):.4g} {'lower' if mean < 0 else 'higher'} on average than those of "
        f"{recorded.source}, and a single one is {spread:.4g} off (root mean square); up to {mean_limit:.4g} and "
        f"{spread_limit:.4g} would be {how} ({tolerance:g} times {noise:.4g} from step to step)"
    )
    if equal_as_printed(*pairs[0]):
        told += "; the first loss is the recorded one: the weights came back, the optimizer or the data may not have"
    return Compared(PASSED if near else FAILED, told, False)


def compare_cold(losses: Sequence[Step], cold: Sequence[float], recorded: Recorded, tolerance: float) -> Compared:
    """Whether the first losses are nearer to those of a start without the checkpoint than to what was expected."""
    begun = [value for value in cold if math.isfinite(value)][:FIRST_LOSSES]
    own = [each.loss for each in losses if math.isfinite(each.loss)][:FIRST_LOSSES]
    onward = [recorded.after[step] for step in sorted(recorded.after)][:FIRST_LOSSES]
    expected = [value for value in onward or [*filter(None, [recorded.at])] if math.isfinite(value)]
    if not own:
        return Compared(NOT_TRIED, "")
    if not begun:
        return Compared(NOT_TRIED, "what a cold start loses is not recorded")
    if not expected:
        return Compared(NOT_TRIED, "the loss at the checkpoint is not recorded, so a cold start cannot be told from it")
    start, here, goal = fmean(begun), fmean(own), fmean(expected)
    noise, _ = noise_of(recorded.around)
    if abs(start - goal) <= tolerance * noise * math.sqrt(2):
        return Compared(NOT_TRIED, f"a cold start ({start:.4g}) cannot be told from the checkpoint ({goal:.4g})")
    if abs(here - start) < abs(here - goal):
        told = f"the losses begin at {here:.4g} like a cold start ({start:.4g}), not like the checkpoint ({goal:.4g})"
        return Compared(FAILED, f"{told}: its weights were not loaded")
    return Compared(PASSED, f"the losses begin at {here:.4g}; a cold start begins at {start:.4g}")
