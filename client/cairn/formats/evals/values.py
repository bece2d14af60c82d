"""Numbers, versions and times as result files write them."""

import math
import re
from datetime import datetime, timedelta, timezone
from typing import Any

from cairn.formats.evals.shapes import text_fault
from cairn.formats.jsonfile import TooLarge
from cairn.numbers import number_from_wire

MISSING = frozenset({"", "-", "--", "n/a", "na", "none", "null"})
NON_FINITE_WORDS = {"nan": math.nan, "inf": math.inf, "+inf": math.inf, "-inf": -math.inf, "infinity": math.inf}
# A number inside what Python prints for it: np.float64(0.128), tensor(0.5), 0.5 stays itself.
PRINTED = re.compile(r"(?:(?:np|numpy|torch)\.)?[a-z]+\d*\((.*?)(?:, .*)?\)")
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?")
# Seconds since 1970 between 2001 and 2100: what is outside is a clock that counts from the start of the machine.
EPOCH_SECONDS = (978_307_200.0, 4_102_444_800.0)


def number(raw: Any) -> float | None:
    """A JSON number; `true` is none, and neither is text except the three non-finite words."""
    found = None if isinstance(raw, TooLarge) else number_from_wire(raw)
    try:
        return None if found is None else float(found)
    except OverflowError:
        return None


def why_no_number(raw: Any) -> str:
    if raw is None or raw == "N/A":
        return "missing in the file, which is not zero"
    if isinstance(raw, TooLarge) or (isinstance(raw, int) and not isinstance(raw, bool)):
        return f"{str(raw)[:40]} is beyond what a double can hold"
    return f"expected a number, found {repr(raw)[:60]}"


def number_in(cell: str) -> float | None:
    """The number in a cell of a table, also as Python prints NumPy's and torch's; None where there is none."""
    text = cell.strip()
    printed = PRINTED.fullmatch(text)
    text = (printed[1] if printed else text).strip()
    if NUMBER.fullmatch(text):
        value = float(text)
        return value if math.isfinite(value) else None
    return NON_FINITE_WORDS.get(text.lower())


def why_no_number_in(cell: str) -> str:
    text = cell.strip()
    if text.lower() in MISSING:
        return "missing in the file, which is not zero"
    if NUMBER.fullmatch(text):
        return f"{text[:40]} is beyond what a double can hold"
    return f"expected a number, found {text[:60]!r}"


def error_of(value: float | None) -> float | None:
    """A standard error that is one: not negative, finite."""
    return value if value is not None and 0 <= value < math.inf else None


def version_text(value: Any) -> str | None:
    """1.1 -> '1.1'; anything but a number or text is no version."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    text = str(value)
    return None if text_fault(text) else text


def whole(value: Any) -> int | None:
    """A count of the file: 5 or 5.0, not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**63:
        return None
    return int(value) if value == int(value) else None


def text_of(value: Any) -> str | None:
    """A text that can be stored; None for anything else."""
    return value if isinstance(value, str) and not text_fault(value) else None


def limit_of(value: Any) -> float | int | None:
    """To how many items (or which share) an evaluation was limited; None where it was not."""
    limit = number(value)
    if limit is None or not 0 < limit < math.inf:
        return None
    return int(limit) if limit == int(limit) else limit


def time_of_epoch(value: Any) -> str | None:
    """Seconds since 1970, as a number or as text, in ISO 8601 with zone; None for a clock that is not that one."""
    seconds = number_in(value) if isinstance(value, str) else number(value)
    if seconds is None or not EPOCH_SECONDS[0] <= seconds <= EPOCH_SECONDS[1]:
        return None
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=round(seconds * 1e6))
    return moment.isoformat().replace("+00:00", "Z")
