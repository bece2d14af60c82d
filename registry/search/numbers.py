"""Numbers as people write them: 50,000, 1.5k, 3e-4, 5万, 十二万, 7B."""

import re
from decimal import Decimal
from typing import Final

from registry.search.patterns import pattern_of

_POWERS: Final = (
    (3, "k thousand 千"),
    (4, "w 万"),
    (6, "m million 百万"),
    (7, "千万"),
    (8, "亿"),
    (9, "b bn billion 十亿"),
    (10, "百亿"),
    (11, "千亿"),
    (12, "t trillion 万亿"),
)
_UNITS: Final = {unit: 10**power for power, units in _POWERS for unit in units.split()}
# '0,05' is no number here: a comma stands between thousands only.
_DIGITS: Final = (
    r"(?<!\d)(?<!\d[.,])(?:[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+)(?:e[+-]?\d+)?(?!\d|[.,]\d)"
)
_UNIT: Final = (
    "(?:"
    + "|".join(unit + ("(?![a-z0-9])" if unit.isascii() else "") for unit in sorted(_UNITS, key=len, reverse=True))
    + ")"
)
_CHINESE: Final = r"[一二两三四五六七八九十百千][零〇一二两三四五六七八九十百千万亿]*"
# A quantity in a pattern; `read_quantity` reads what it matched.
QUANTITY: Final = rf"(?:-?{_DIGITS}(?:\s?{_UNIT})?|{_CHINESE})"
# One with a unit that sizes of models are written in.
SIZE: Final = rf"(?:{_DIGITS}\s?(?:billion|million|bn|b|m)(?![a-z0-9])|{_DIGITS}\s?(?:千亿|百亿|十亿|亿|千万|百万))"

_PARTS = pattern_of(rf"(?P<digits>-?{_DIGITS})\s?(?P<unit>{_UNIT})?")
_VALUES = {letter: value for value, letter in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_TENS = {"十": 10, "百": 100, "千": 1000}
_SHARES: Final = (
    pattern_of(rf"百分之\s*(?P<percent>{QUANTITY})"),
    pattern_of(r"(?P<tens>[一二两三四五六七八九十]|\d(?:\.\d)?)成(?P<ones>[一二三四五六七八九半])?(?![绩果功为员本])"),
)
_PERCENT_OF: Final = {"half": 50, "third": 33, "quarter": 25, "quartile": 25, "fifth": 20, "tenth": 10, "decile": 10}
_END: Final = pattern_of(
    rf"\b(?:(?P<top>top|upper|best)|bottom|lower|worst)\s+(?P<part>{'|'.join(_PERCENT_OF)})\b", re.IGNORECASE
)
_END_ZH: Final = pattern_of(r"(?P<end>[前后])(?:(?P<half>一半)|(?P<of>[二三四五十])分之一)")


def write_shares(text: str) -> str:
    """六成, 七成五 and 百分之五 as percent: 60%, 75%, 5%; 'the upper third' and 前四分之一 as 'top 33%' and 前25%."""
    percent, tenths = _SHARES
    text = _END.sub(lambda match: f"{'top' if match['top'] else 'bottom'} {_PERCENT_OF[match['part'].lower()]}%", text)
    text = _END_ZH.sub(
        lambda match: f"{match['end']}{50 if match['half'] else 100 // read_quantity(match['of'])}%", text
    )
    text = percent.sub(lambda match: f"{read_quantity(match['percent']):g}%", text)
    return tenths.sub(lambda match: f"{10 * read_quantity(match['tens']) + _ones(match['ones']):g}%", text)


def _ones(letter: str | None) -> int:
    return 5 if letter == "半" else _VALUES.get(letter or "", 0)


def read_quantity(text: str) -> int | float:
    """The number behind a match of QUANTITY or SIZE: whole where it is whole."""
    match = _PARTS.fullmatch(text.strip())
    if match is None:
        return _read_chinese(text.strip())
    number = Decimal(match["digits"].replace(",", "")) * _UNITS.get(match["unit"] or "", 1)
    return int(number) if number == number.to_integral_value() and abs(number) < 2**63 else float(number)


def _read_chinese(text: str) -> int:
    total = section = digit = 0
    for letter in text:
        if letter in _VALUES:
            digit = _VALUES[letter]
        elif letter in _TENS:
            section, digit = section + (digit or 1) * _TENS[letter], 0
        else:
            total, section, digit = total + (section + digit) * _UNITS[letter], 0, 0
    return total + section + digit
