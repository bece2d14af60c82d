"""How long a run runs between two interruptions, and how sure that is.

Interruptions are taken as a Poisson process over exposed running time: planned stops are no part of it. The interval
is the exact one (Garwood 1936); where nothing has failed yet there is only a lower bound. scipy.special is imported
where a quantile is needed.
"""

import math
from dataclasses import dataclass
from typing import Final

HOURS_PER_MONTH: Final = 730.5
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Mtbf:
    """Mean time between failures. `hours` is None where none was seen: then only `low` is known, one-sided.

    `low` and `high` hold it with a confidence of 95 %; `high` is None where nothing bounds it.
    """

    hours: float | None
    low: float | None
    high: float | None
    failures: int

    def of_devices(self, devices: int) -> float | None:
        """Device-hours between failures, which carry over to a run of another size."""
        return None if self.hours is None else self.hours * devices


def mtbf(exposed_hours: float, failures: int) -> Mtbf:
    """From running time and the interruptions within it: [2T/chi2(.975; 2n+2), 2T/chi2(.025; 2n)]."""
    if not exposed_hours > 0 or not math.isfinite(exposed_hours) or failures < 0:
        raise ValueError(f"{failures} failures in {exposed_hours} h are no record of running time")
    if failures == 0:
        return Mtbf(None, -exposed_hours / math.log(1 - CONFIDENCE), None, 0)
    from scipy.special import chdtri

    tail = (1 - CONFIDENCE) / 2
    low = 2 * exposed_hours / float(chdtri(2 * failures + 2, tail))
    high = 2 * exposed_hours / float(chdtri(2 * failures, 1 - tail))
    return Mtbf(exposed_hours / failures, low, high, failures)


def hours_from_monthly_rate(rate: float, devices: int) -> float:
    """Before there is a record: from the share of devices that fail in a month."""
    if not 0 < rate <= 1 or devices < 1:
        raise ValueError(f"{rate} of {devices} devices a month is no failure rate")
    return HOURS_PER_MONTH / (rate * devices)
