"""What a person writes for a quantity, and how one is shown: durations, layouts, sizes."""

import re
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:  # click 8.1 knows no type parameter
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType

UNITS = ("B", "kB", "MB", "GB", "TB", "PB", "EB")
SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
DEGREES = ("world_size", "tp", "pp", "dp", "cp", "ep")
_PART = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_DEGREE = re.compile(r"(\w{1,20})=(\d{1,9})", re.ASCII)


class Duration(ParamType):
    """`90`, `90s`, `10m`, `1h30m`: seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, (int, float)):
            return float(value)
        text = str(value).strip().lower()
        if re.fullmatch(r"\d+(\.\d+)?", text):
            seconds = float(text)
        elif re.fullmatch(rf"({_PART.pattern})+", text):
            seconds = sum(float(number) * SECONDS[unit] for number, unit in _PART.findall(text))
        else:
            self.fail(f"{value!r} is no duration; expected e.g. 90s, 10m or 1h30m.", param, ctx)
        if not 0 < seconds < 1e9:
            self.fail(f"{value!r} is no usable duration.", param, ctx)
        return seconds


class LayoutType(ParamType):
    """`tp=4,pp=2,dp=8`: how many ranks of each kind there are today."""

    name = "layout"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        found: dict[str, int] = {}
        for part in str(value).split(","):
            degree = _DEGREE.fullmatch(part.strip())
            if degree is None or degree[1] not in DEGREES or degree[1] in found or int(degree[2]) < 1:
                known = ", ".join(DEGREES)
                self.fail(f"{part.strip()!r} is no degree; expected e.g. tp=4,pp=2,dp=8 of {known}.", param, ctx)
            found[degree[1]] = int(degree[2])
        return found


class Words(ParamType):
    """`a,b`: some of a few words."""

    def __init__(self, known: tuple[str, ...], name: str) -> None:
        self.known, self.name = known, name

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        words = value if isinstance(value, tuple) else tuple(each.strip() for each in str(value).split(","))
        for word in words:
            if word not in self.known:
                self.fail(f"{word!r} is none of {', '.join(self.known)}.", param, ctx)
        return words


DURATION, LAYOUT = Duration(), LayoutType()


def size(count: int) -> str:
    """Bytes in three digits: '98.5 GB'."""
    number, unit = float(count), 0
    while number >= 999.5 and unit < len(UNITS) - 1:
        number, unit = number / 1000, unit + 1
    return f"{number:.3g} {UNITS[unit]}" if unit else f"{count} B"
