"""Numbers as JSON carries them: the non-finite as strings, and those of a file as they were written there."""

import math
import re
from typing import Any

NON_FINITE = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


class Written(float):
    """A number that is sent as it was written: 1.50 stays 1.50. Raises ValueError for what is no JSON number."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> "Written":
        if not JSON_NUMBER.fullmatch(text):
            raise ValueError(f"{text[:40]!r} is no number of JSON")
        number = super().__new__(cls, text)
        number.text = text
        return number

    def __reduce__(self) -> tuple[type["Written"], tuple[str]]:
        """So that a copy is written the same way."""
        return Written, (self.text,)


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
