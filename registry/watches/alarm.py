"""When does a sequence of scores raise an alarm? CUSUM of the differences to what came before, in standard errors.

S = max(0, S - z - .5), alarm above 5. z is the difference to the reference over the standard error of both; the
reference is the mean of the ten scores before, weighted by their errors. A training's curve rises, so that its recent
past is a floor, and a curve that flattens never falls below it; a trend that is fitted would call the bend a fall. The
mean moves on with every score: then successive z are as good as independent, and 100 scores of a level curve raise a
false alarm in 4 % of cases. (A reference that stands still while S rises shares its error with every z: 72 %.)

After an alarm the count begins anew from the score that raised it, so that one fall is one alarm, and the next fall
another. All is computed from the whole sequence: the order in which scores arrived has no say.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from registry.recovery.onset import CUSUM_ALARM, CUSUM_SLACK

REFERENCE: Final = 10  # scores that the reference is made of, at most
LEAST_REFERENCE: Final = 3  # and at least: with fewer its own error rules
AT_ONCE: Final = 3.5  # standard errors: an alias moves seldom, so a single fall of this size must do (see `one_move`)


@dataclass(frozen=True, slots=True)
class Alarm:
    """`at` is the place of the score that raised it, `good` of the last one before S rose. Figures are normalised.

    `level` and its error: the mean of the scores up to `good`; `value` the score at the alarm; `s`: S at the alarm.
    """

    at: int
    good: int
    s: float
    level: float
    level_stderr: float
    value: float
    stderr: float

    @property
    def fall(self) -> float:
        return self.level - self.value


def find_alarms(
    values: Sequence[float],
    errors: Sequence[float],
    *,
    least: int = LEAST_REFERENCE,
    at_once: float | None = None,
    slack: float = CUSUM_SLACK,
    alarm: float = CUSUM_ALARM,
) -> list[Alarm]:
    """The alarms of a sequence: scores with larger as better, finite, standard errors above 0.

    `least`: scores that a reference needs. `at_once`: a single z below minus this is an alarm as well (Lucas 1982).
    """
    if len(values) != len(errors):
        raise ValueError("values and errors must have one entry per score")
    found: list[Alarm] = []
    start, good, s = 0, 0, 0.0
    for place in range(len(values)):
        first = max(start, place - REFERENCE)
        if place - start < least:
            good = place
            continue
        mean, variance = _weighted(values[first:place], errors[first:place])
        z = (values[place] - mean) / (errors[place] ** 2 + variance) ** 0.5
        s = max(0.0, s - z - slack)
        if s > alarm or (at_once is not None and z < -at_once):
            level, spread = _weighted(
                values[max(start, good + 1 - REFERENCE) : good + 1], errors[max(start, good + 1 - REFERENCE) : good + 1]
            )
            found.append(Alarm(place, good, s, level, spread**0.5, values[place], errors[place]))
            start, good, s = place, place, 0.0
        elif s == 0.0:
            good = place
    return found


def one_move(values: Sequence[float], errors: Sequence[float]) -> list[Alarm]:
    """The alarms of what an alias served, in order: one score is a reference, and one clear fall an alarm."""
    return find_alarms(values, errors, least=1, at_once=AT_ONCE)


def _weighted(values: Sequence[float], errors: Sequence[float]) -> tuple[float, float]:
    """The mean weighted by 1/error², and its variance."""
    weights = [1 / error**2 for error in errors]
    total = sum(weights)
    return sum(weight * value for weight, value in zip(weights, values, strict=True)) / total, 1 / total
