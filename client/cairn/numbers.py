"""Non-finite numbers as JSON carries them: the strings "NaN", "Infinity" and "-Infinity"."""

import math
from typing import Any

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}


def number_to_wire(value: Any) -> Any:
    """A non-finite number as its string; everything else as it is."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def number_from_wire(value: Any) -> float | int | None:
    """The number, or the one that a string stands for; None for anything else. `true` is no number."""
    if isinstance(value, str):
        return NON_FINITE.get(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
