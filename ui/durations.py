"""A time as a person types it into a form: `600`, `90 s`, `10m`, `1h30m`. The command line reads the same."""

import re
from typing import Final

LONGEST_SECONDS: Final = 1_000_000_000
EXPECTED: Final = "a time such as 600, 90s, 10m or 1h30m"
_SECONDS: Final = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_PART: Final = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(min|[smhd])", re.ASCII)


def read_seconds(text: str) -> float | None:
    """The seconds; without a unit they are meant. None where it is no time above zero and below thirty years."""
    typed = re.sub(r"[\s\u202f_]|,(?=\d{3}(?!\d))", "", text.lower())
    if re.fullmatch(r"\d{1,12}(\.\d{1,6})?", typed, re.ASCII):
        seconds = float(typed)
    elif re.fullmatch(f"({_PART.pattern})+", typed, re.ASCII):
        seconds = sum(float(amount) * _SECONDS[unit] for amount, unit in _PART.findall(typed))
    else:
        return None
    return seconds if 0 < seconds <= LONGEST_SECONDS else None
