"""Numbers for people: bytes, durations, steps, scores with their error, times. Pure, no markup.

Missing is shown as an en dash, never as zero. Non-finite numbers arrive as floats or as their wire strings
and are shown as NaN, ∞ and −∞. Groups of digits stand apart by a narrow space that does not break.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

MISSING = "–"
THIN = "\u202f"  # narrow no-break space
MINUS = "\u2212"
_BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
_COUNTS = ("", "k", "M", "B", "T")

Number = float | int | str | None


def as_float(value: Number) -> float | None:
    """The number behind a stored or wire value; None where there is none."""
    if value is None:
        return None
    return float({"Infinity": "inf", "-Infinity": "-inf"}.get(value, value) if isinstance(value, str) else value)


def finite(value: Number) -> float | None:
    """The value where it is an ordinary number, else None: what may be drawn and compared."""
    number = as_float(value)
    return number if number is not None and math.isfinite(number) else None


def _non_finite(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return "∞" if number > 0 else MINUS + "∞"


def _signed(text: str) -> str:
    return MINUS + text[1:] if text.startswith("-") else text


def grouped(value: int | None) -> str:
    """An integer in groups of three: 143 000."""
    return MISSING if value is None else _signed(f"{value:,}".replace(",", THIN))


def step(value: int | None) -> str:
    """A step in a column: one longer than any training is written short, so that it widens no other row: 9.22e18."""
    return grouped(value) if value is None or value < 10**12 else number(value, 3)


def fixed(value: Number, decimals: int) -> str:
    """A number with this many decimals, or its name where it is not finite."""
    number = as_float(value)
    if number is None:
        return MISSING
    if not math.isfinite(number):
        return _non_finite(number)
    text = f"{number:,.{decimals}f}".replace(",", THIN)
    return text[1:] if text.startswith("-") and not text.strip(f"-0.{THIN}") else _signed(text)


def number(value: Number, digits: int = 4) -> str:
    """A number with significant digits and no idle zeros: 0.6123, 3e−5, 6.7e8."""
    amount = as_float(value)
    if amount is None:
        return MISSING
    if not math.isfinite(amount):
        return _non_finite(amount)
    if amount == 0:
        return "0"
    if amount == int(amount) and abs(amount) < 1e7:
        return grouped(int(amount))
    exponent = math.floor(math.log10(abs(amount)))
    if -5 < exponent < 7:
        text = f"{amount:,.{max(0, digits - 1 - exponent)}f}".replace(",", THIN)
        return _signed(text.rstrip("0").rstrip(".") if "." in text else text)
    mantissa, power = f"{amount:.{digits - 1}e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
    return f"{_signed(mantissa)}e{_signed(str(int(power)))}"


def exact(value: Number) -> str:
    """Every digit, for a title or a CSV cell: what is stored, not what fits."""
    if isinstance(value, int):
        return repr(int(value))
    amount = as_float(value)
    if amount is None:
        return ""
    if math.isfinite(amount):
        return repr(amount)
    return "NaN" if math.isnan(amount) else ("Infinity" if amount > 0 else "-Infinity")


def _decimals_for(stderr: float | None, value: float | None) -> int:
    """Two significant digits of the error; without one, four significant digits of the value."""
    scale = stderr if stderr else value
    if not scale:
        return 4
    digits = 2 if stderr else 4
    return min(8, max(0, digits - 1 - math.floor(math.log10(abs(scale)))))


def score(value: Number, stderr: Number = None) -> str:
    """A score with its standard error, rounded by the error: 0.612 ± 0.013."""
    error, amount = finite(stderr), finite(value)
    if error is None:
        return number(value)
    if amount is None:
        return fixed(value, 0)
    if abs(amount) >= 1e7:
        return f"{number(amount)} ± {number(error, 2)}"
    decimals = _decimals_for(error, amount)
    return f"{fixed(amount, decimals)} ± {fixed(error, decimals)}"


def delta(value: Number, stderr: Number = None) -> str:
    """A difference, always with its sign: +0.021 ± 0.019."""
    amount = as_float(value)
    text = score(value, stderr)
    return f"+{text}" if amount is not None and amount > 0 else text


def in_points(value: Number, stderr: Number = None, *, signed: bool = True) -> str:
    """A difference of fractions in points of a hundred, one decimal: −4.1 ± 1.2 points."""
    amount, error = as_float(value), finite(stderr)
    if amount is None:
        return MISSING
    if not math.isfinite(amount):
        return _non_finite(amount)
    text = fixed(amount * 100 if signed else abs(amount) * 100, 1)
    sign = "+" if signed and amount > 0 else ""
    return f"{sign}{text}{f' ± {fixed(error * 100, 1)}' if error is not None else ''} points"


def percent(value: Number, decimals: int = 0) -> str:
    """A fraction as percent: 93%."""
    amount = as_float(value)
    if amount is None or not math.isfinite(amount):
        return MISSING if amount is None else _non_finite(amount)
    return f"{fixed(amount * 100, decimals)}%"


def probability(value: Number) -> str:
    """A p or q value: two digits, and below a ten-thousandth only that."""
    amount = finite(value)
    if amount is None:
        return MISSING
    return "< 0.0001" if amount < 0.0001 else number(amount, 2)


def chance(value: Number) -> str:
    """A probability as percent, which is never quite none and never quite all: < 0.1%, 38.2%, > 99.9%."""
    amount = finite(value)
    if amount is None:
        return MISSING
    return "< 0.1%" if amount < 0.001 else "> 99.9%" if amount > 0.999 else percent(amount, 1)


def ordinal(value: Number) -> str:
    """A percentile as a fraction of 1 in words: 93rd."""
    amount = finite(value)
    if amount is None:
        return MISSING
    place = round(amount * 100)
    ending = "th" if 10 <= place % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"{place}{ending}"


def _scaled(amount: float, base: float, units: tuple[str, ...]) -> str:
    power = 0
    while abs(amount) >= base and power < len(units) - 1:
        amount /= base
        power += 1
    decimals = 0 if power == 0 or abs(amount) >= 100 else (1 if abs(amount) >= 10 else 2)
    text = fixed(amount, decimals)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text} {units[power]}".rstrip()


def size(value: int | None) -> str:
    """Bytes in decimal units: 14.3 GB."""
    return MISSING if value is None else _scaled(value, 1000.0, _BYTES)


def count(value: Number) -> str:
    """A large count, as tokens and parameters are spoken of: 300 B, 1.44 B."""
    amount = finite(value)
    if amount is None:
        return fixed(value, 0) if value is not None else MISSING
    if abs(amount) >= 1e15:
        return number(amount, 3)
    return _scaled(amount, 1000.0, _COUNTS)


def duration(seconds: Number) -> str:
    """A span in its two largest units: 450 ms, 12.3 s, 20 min 21 s, 1 h 5 min, 3 d 4 h."""
    amount = as_float(seconds)
    if amount is None:
        return MISSING
    if not math.isfinite(amount):
        return _non_finite(amount)
    if amount < 0:
        return MINUS + duration(-amount)
    if amount < 1:
        return _below_a_second(amount)
    if amount < 59.95:
        return f"{number(round(amount, 1), 3)} s"
    return _two_units(round(amount))


def _below_a_second(amount: float) -> str:
    """Of what is shorter than a tenth of a millisecond only that: no clock here tells more."""
    if amount == 0:
        return "0 s"
    return f"{number(amount * 1000, 3)} ms" if amount >= 1e-4 else "< 0.1 ms"


def _two_units(seconds: int) -> str:
    for large, small, length, unit in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if seconds >= length:
            whole, rest = divmod(round(seconds / unit), length // unit)
            return f"{grouped(whole)} {large}" + (f" {rest} {small}" if rest and whole < 100 else "")
    return f"{seconds} s"


def ago(moment: datetime | None, now: datetime) -> str:
    """How long since, in one unit: 12 min ago, 3 d ago, in 5 min."""
    if moment is None:
        return MISSING
    seconds = (now - moment).total_seconds()
    text = _one_unit(abs(seconds))
    if text == "now":
        return "just now"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def _one_unit(seconds: float) -> str:
    for unit, length in (("y", 365.25 * 86400), ("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{grouped(int(seconds // length))} {unit}"
    return "now" if seconds < 10 else f"{int(seconds)} s"


def absolute(moment: datetime | None) -> str:
    """A time to the second, in UTC, said so."""
    return MISSING if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def machine_time(moment: datetime) -> str:
    """For the datetime attribute and for CSV."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def plural(amount: int, word: str, many: str | None = None) -> str:
    """A count with its noun: 1 run, 97 runs."""
    return f"{grouped(amount)} {word if amount == 1 else many or word + 's'}"


def middle(text: str, length: int = 48) -> str:
    """A long name with its middle left out: both ends of a run's name carry meaning."""
    if len(text) <= length:
        return text
    head = (length - 1) * 3 // 5
    return f"{text[:head]}…{text[head + 1 - length :]}"


def apart(names: Iterable[str], length: int = 48) -> dict[str, str]:
    """Each name as `middle` cuts it; those that would then read the same are cut where they are alike instead.

    One that still reads like another is left whole.
    """
    cut = {name: middle(name, length) for name in names}
    alike: dict[str, list[str]] = {}
    for name, text in cut.items():
        alike.setdefault(text, []).append(name)
    for group in alike.values():
        if len(group) > 1:
            head, tail = _shared(group), _shared([name[::-1] for name in group])
            cut |= {name: _around(name, head, tail, length) for name in group}
    times = Counter(cut.values())
    return {name: text if times[text] == 1 else name for name, text in cut.items()}


def _shared(names: Sequence[str]) -> int:
    """How many letters all begin with alike, up to the last mark between words."""
    low, high = min(names), max(names)
    alike = next((place for place, pair in enumerate(zip(low, high, strict=False)) if len(set(pair)) > 1), len(low))
    return max(low.rfind(mark, 0, alike) for mark in "-_./ ") + 1


def _around(name: str, head: int, tail: int, length: int) -> str:
    """Some of the beginning, and whole what stands between `head` letters and `tail` letters that others have too."""
    own = middle(name[head : len(name) - tail], length - 2)
    return f"{name[: min(head, length - 2 - len(own))]}…{own}{'…' if tail else ''}"


def words(text: object) -> str:
    """A code name as words: data_position, weights-only."""
    return str(text).replace("_", " ").replace("-", " ")


# What templates may use, by name.
ALL: dict[str, Callable[..., object]] = {
    "grouped": grouped,
    "step": step,
    "fixed": fixed,
    "number": number,
    "exact": exact,
    "score": score,
    "delta": delta,
    "in_points": in_points,
    "chance": chance,
    "percent": percent,
    "ordinal": ordinal,
    "probability": probability,
    "size": size,
    "count": count,
    "duration": duration,
    "ago": ago,
    "absolute": absolute,
    "machine_time": machine_time,
    "plural": plural,
    "middle": middle,
    "apart": apart,
    "words": words,
    "finite": finite,
}
