"""When did a score begin to fall, and what is the last checkpoint that is still safely good?

A Bayesian scan for one change on the trend y = a + b ln(step) - delta [after gap k]: a and b flat and integrated out,
delta uniform on (0, .3], one half for 'no change', all gaps alike. It takes unequal errors and spacing, and a
rising curve, where mean-shift segmentation finds the right gap in 6 % of cases against 91 %. 'The checkpoint with
the best score' is safe in 57 % of cases, the last known good of this scan in 99.8 %.

A log-step trend holds for a few octaves, not from the first step: published curves bend (an accuracy is flat at
chance, climbs, and saturates), and a scan of all of one calls the bend a fall. So only the last factor of 32 in steps
is scanned, and where even the best shape misses the points by more than chance allows (chi-squared beyond its 99th
percentile), the errors are widened by that misfit (Birge's ratio) before anything is concluded.

A point that stands alone (`registry.recovery.alone`) is left out first: one bad evaluation among good ones is no fall.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from registry.evals.percentiles import Booleans, Integers
from registry.recovery.alone import stand_alone
from registry.wording import counted

LARGEST_DROP = 0.3
PRIOR_NO_CHANGE = 0.5
SAFE = 0.05  # a checkpoint is known good while P(already bad) stays at or below this
ESTABLISHED = 0.05  # and an onset is established while P(no change) does
CLEAR_BIC = 6.0
MISFIT = 0.01  # the chance below which a misfit is no longer one
TREND_SPAN = 32.0  # how far back the trend is trusted: to the newest step divided by this
NEAREST = 5  # points before a gap that those behind it are compared with
LEAST_FALL = 0.3  # standard errors that they lie lower at least
LEAST_POINTS = 4  # two for the trend, one for the drop, one to contradict them
CUSUM_SLACK, CUSUM_ALARM = 0.5, 5.0  # in standard errors: one false alarm in 932 points, 4.1 points to see two sigma

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Onset:
    """What the scan says of one score over a run's steps.

    `p_bad` has one entry per point: the chance that it is already bad, NaN for the points at the steps `alone`, which
    were left out since those around them contradict them. `after_step` and `by_step` are the ends of the
    likeliest gap; for a gradual fall, of the smallest range of gaps that holds 95 %. `shape`: step, gradual, unclear,
    or none where nothing is established. `last_known_good` is provisional unless `is_established`.
    `found_by`: scores (the scan), bisect, or comparison of two checkpoints, where the scan alone establishes nothing;
    then `q_value` is that of the fall between the two, and P(no change) is NaN. `bisect_id`: which search.
    """

    steps: tuple[int, ...]
    p_no_change: float
    p_bad: tuple[float, ...]
    is_established: bool
    shape: str
    drop: float | None
    drop_stderr: float | None
    after_step: int | None
    by_step: int | None
    last_known_good: int | None
    sentence: str
    alone: tuple[int, ...] = ()
    found_by: str = "scores"
    q_value: float | None = None
    bisect_id: int | None = None


def find_onset(
    steps: Sequence[int] | Integers, values: Sequence[float] | Numbers, errors: Sequence[float] | Numbers
) -> Onset:
    """Scan a series: ascending steps, scores with larger as better, standard errors above 0, all finite.

    Step 0 has no logarithm and takes the place of step 1. Raises ValueError where the series is not such a one.
    """
    x, y, se = np.asarray(steps, float), np.asarray(values, float), np.asarray(errors, float)
    if not len(x) == len(y) == len(se):
        raise ValueError("steps, values and errors must have one entry per checkpoint")
    whole = tuple(np.asarray(steps, np.int64).tolist())
    if len(x) < LEAST_POINTS:
        return _too_short(whole)
    if not (np.all(np.diff(x) > 0) and np.all(se > 0) and np.all(np.isfinite(y))):
        raise ValueError("steps must ascend, scores be finite and standard errors be above 0")
    odd = stand_alone(np.log(np.maximum(x, 1.0)), y, se)
    if not odd.any():
        return _scan(whole, x, y, se)
    return _with_those_alone(whole, odd, _scan(tuple(x[~odd].astype(np.int64).tolist()), x[~odd], y[~odd], se[~odd]))


def _with_those_alone(steps: tuple[int, ...], odd: Booleans, found: Onset) -> Onset:
    """What was found without the odd points, told of all of them."""
    p_bad = np.full(len(steps), np.nan)
    p_bad[~odd] = found.p_bad
    alone = tuple(np.asarray(steps)[odd].tolist())
    stand = " ".join(f"Step {step} stands alone: evaluate it again." for step in alone)
    sentence = f"{found.sentence} {stand}"
    return replace(found, steps=steps, p_bad=tuple(p_bad.tolist()), sentence=sentence, alone=alone)


def _scan(whole: tuple[int, ...], x: Numbers, y: Numbers, se: Numbers) -> Onset:
    first = _first_of_trend(x)
    place = x[first:]
    design = _Design(np.log(np.maximum(place, 1.0)), y[first:], _widened(place, y[first:], se[first:]))
    log_bayes, drops, drop_errors = design.scan()
    joint = np.concatenate(([np.log(PRIOR_NO_CHANGE)], np.log((1 - PRIOR_NO_CHANGE) / len(log_bayes)) + log_bayes))
    posterior = np.exp(joint - np.logaddexp.reduce(joint))
    p_bad = np.concatenate((np.zeros(first + 1), np.cumsum(posterior[1:])))
    gap = int(np.argmax(posterior[1:]))
    fell = posterior[0] <= ESTABLISHED and _is_lower(y[first:], 1 / design.weight, gap)
    shape = _shape(design, place) if fell else "none"
    found = _Found(float(posterior[0]), posterior[1:], first, shape, gap, float(drops[gap]), float(drop_errors[gap]))
    return _answer(whole, found, p_bad)


@dataclass(frozen=True, slots=True)
class _Found:
    """The scan's outcome; gaps count from the point `first`, before which nothing was scanned."""

    p_no_change: float
    gaps: Numbers
    first: int
    shape: str
    gap: int
    drop: float
    error: float


def _first_of_trend(steps: Numbers) -> int:
    """The first point within the trend's span, but never so late that too few are left."""
    return min(int(np.searchsorted(steps, steps[-1] / TREND_SPAN)), len(steps) - LEAST_POINTS)


def _widened(steps: Numbers, values: Numbers, errors: Numbers) -> Numbers:
    """The errors, times the ratio by which the best of all shapes still misses the points, where that is no chance."""
    from scipy.special import chdtri  # 20 MB and 0.3 s: only where a series is scanned

    free = len(steps) - 4  # the trend's two, the drop, and its place
    if free < 1:
        return errors
    design = _Design(np.log(np.maximum(steps, 1.0)), values, errors)
    gain = max(_best_gain(*design.step_moments()), _best_gain(*design.hinge_moments(_scaled(steps))))
    misfit = float((design.residual**2).sum()) - gain
    widening = (misfit / free) ** 0.5 if misfit > chdtri(free, MISFIT) else 1.0
    return np.asarray(errors * widening)


def _scaled(steps: Numbers) -> Numbers:
    return np.asarray((steps - steps[0]) / (steps[-1] - steps[0]))


class _Design:
    """The series with its trend projected out, weighted by 1/error. All sums over gaps are cumulative: O(points)."""

    def __init__(self, log_steps: Numbers, values: Numbers, errors: Numbers) -> None:
        self.weight = 1 / errors
        trend = np.column_stack((np.ones_like(log_steps), log_steps)) * self.weight[:, None]
        self.basis, _ = np.linalg.qr(trend)
        weighted = values * self.weight
        self.residual = weighted - self.basis @ (self.basis.T @ weighted)
        self.floor = 1e-9 * float((self.weight**2).sum())

    def step_moments(self) -> tuple[Numbers, Numbers]:
        """For a step down in each gap: its information about delta and its product with the residual (+: drop)."""
        w, projected = self.weight, _behind(self.weight[:, None] * self.basis)
        information = _behind(w**2) - (projected**2).sum(axis=1)
        return np.where(information > self.floor, information, 0.0), -_behind(w * self.residual)

    def hinge_moments(self, place: Numbers) -> tuple[Numbers, Numbers]:
        """The same for a slope down from each point but the last; `place` are the steps scaled to 0 .. 1."""
        w, start = self.weight, place[:-1]
        squares = _behind(w**2 * place**2) - 2 * start * _behind(w**2 * place) + start**2 * _behind(w**2)
        basis = w[:, None] * self.basis
        projected = _behind(place[:, None] * basis) - start[:, None] * _behind(basis)
        information = squares - (projected**2).sum(axis=1)
        product = -(_behind(w * place * self.residual) - start * _behind(w * self.residual))
        return np.where(information > self.floor, information, 0.0), product

    def scan(self) -> tuple[Numbers, Numbers, Numbers]:
        """(log Bayes factor against no change, estimated drop, its error) per gap; delta integrated over (0, .3]."""
        from scipy.special import log_ndtr

        information, product = self.step_moments()
        seen = information > 0
        safe = np.where(seen, information, 1.0)
        mean, spread = product / safe, 1 / np.sqrt(safe)
        low, high = -mean / spread, (LARGEST_DROP - mean) / spread
        # log(Phi(high) - Phi(low)), taken in the tail where it is exact
        left = np.where(low > 0, -high, low)
        right = np.where(low > 0, -low, high)
        inside = log_ndtr(right) + np.log(-np.expm1(log_ndtr(left) - log_ndtr(right)))
        factor = mean**2 / spread**2 / 2 + np.log(np.sqrt(2 * np.pi) * spread / LARGEST_DROP) + inside
        return np.where(seen, factor, 0.0), np.where(seen, mean, 0.0), np.where(seen, spread, np.inf)


def _behind(values: Numbers) -> Numbers:
    """For each gap, the sum over the points behind it, along the first axis."""
    return np.asarray(np.cumsum(values[::-1], axis=0)[::-1][1:])


def _best_gain(information: Numbers, product: Numbers) -> float:
    """By how much the best of the shapes, with a drop of 0 or more, lowers chi-squared."""
    return float((np.maximum(product, 0.0) ** 2 / np.where(information > 0, information, np.inf)).max())


def _is_lower(values: Numbers, errors: Numbers, gap: int) -> bool:
    """Whether the points behind the gap lie lower than the nearest before it: who only flattens has not fallen.

    Of curves that saturate (.45 - .2/sqrt(k)), 4 % instead of 10 % are said to have fallen.
    """
    before, after = slice(max(0, gap + 1 - NEAREST), gap + 1), slice(gap + 1, None)
    weights = 1 / errors**2
    high, low = (np.average(values[part], weights=weights[part]) for part in (before, after))
    spread = (1 / weights[before].sum() + 1 / weights[after].sum()) ** 0.5
    return bool(high - low > LEAST_FALL * spread)


def _shape(design: _Design, steps: Numbers) -> str:
    """A step down or a slope down? By BIC; both have as many parameters, so it is the difference of chi-squared."""
    slope = _best_gain(*design.hinge_moments(_scaled(steps)))
    favours_slope = slope - _best_gain(*design.step_moments())
    if abs(favours_slope) <= CLEAR_BIC:
        return "unclear"
    return "gradual" if favours_slope > 0 else "step"


def _answer(steps: tuple[int, ...], found: _Found, p_bad: Numbers) -> Onset:
    established = found.shape != "none"
    last_good = int(steps[int(np.flatnonzero(p_bad <= SAFE)[-1])])
    after, by = (found.first + place for place in _range(found.gaps, found.gap, wide=found.shape != "step"))
    return Onset(
        steps=steps,
        p_no_change=found.p_no_change,
        p_bad=tuple(p_bad.tolist()),
        is_established=established,
        shape=found.shape,
        drop=found.drop if established else None,
        drop_stderr=found.error if established else None,
        after_step=int(steps[after]) if established else None,
        by_step=int(steps[by]) if established else None,
        last_known_good=last_good,
        sentence=_sentence(found, established, int(steps[after]), int(steps[by]), last_good),
    )


def _range(gaps: Numbers, likeliest: int, *, wide: bool) -> tuple[int, int]:
    """The points before and after the change: around the likeliest gap, or around the gaps that hold 95 %."""
    if not wide:
        return likeliest, likeliest + 1
    order = np.argsort(gaps)[::-1]
    held = np.cumsum(gaps[order]) / gaps.sum()
    kept = order[: int(np.searchsorted(held, 0.95)) + 1]
    return int(kept.min()), int(kept.max()) + 1


def _sentence(found: _Found, established: bool, after: int, by: int, last_good: int) -> str:
    chance = f"the chance of no change is {f'{found.p_no_change:.2g}' if found.p_no_change > 1e-12 else 'below 1e-12'}"
    if not established:
        flat = found.p_no_change <= ESTABLISHED
        why = "the curve bends, but later scores are not lower" if flat else chance
        return (
            f"A fall is not established: {why}. Step {last_good} is the provisional last known good, the newest "
            f"whose chance of being bad already is at most {SAFE:.0%}."
        )
    size = f"{100 * found.drop:.1f} ± {100 * found.error:.1f} points"
    told = {
        "step": f"Fell by {size} between steps {after} and {by}",
        "gradual": f"Fell gradually, beginning between steps {after} and {by}",
        "unclear": f"Fell by about {size}, beginning between steps {after} and {by}; at once or gradually is unclear",
    }[found.shape]
    return f"{told} ({chance}). Step {last_good} is the last known good."


def _too_short(steps: tuple[int, ...]) -> Onset:
    evaluated = counted(len(steps), "evaluated checkpoint")
    sentence = f"A fall is not established: {evaluated}, and {LEAST_POINTS} are needed."
    nothing = tuple(float("nan") for _ in steps)
    return Onset(steps, float("nan"), nothing, False, "none", None, None, None, None, None, sentence)


def cusum(standardised: Sequence[float], slack: float = CUSUM_SLACK, alarm: float = CUSUM_ALARM) -> int | None:
    """The online alarm: the index at which S = max(0, S - z - slack) first exceeds `alarm`; None: never.

    `standardised` are deviations from the trend in standard errors, negative for losses. It says that something
    happened, not when: that is `find_onset`.
    """
    level = 0.0
    for index, z in enumerate(standardised):
        level = max(0.0, level - z - slack)
        if level > alarm:
            return index
    return None
