"""Reading how many are asked for: 'top 3 at math', 'the best five', 'newest 10', 数学最强的前 5 个."""

from typing import Final

from registry.search.draft import Draft
from registry.search.numbers import read_quantity
from registry.search.patterns import pattern_of

_NAMED: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_WORDS: Final = {word: number for number, word in enumerate(_NAMED, start=2)}
_FIRST: Final = (
    "top|best|worst|bottom|strongest|weakest|highest|lowest|newest|latest|oldest|earliest|most recent|smallest"
)
_COUNTS: Final = (
    pattern_of(
        rf"\b(?:{_FIRST})\s+(?P<number>\d{{1,3}}|{'|'.join(_WORDS)})\b(?![.,]?\d|[-+%]|"
        r"\s*(?:%|percent\b|[bmk]\b|bn\b|million\b|billion\b|steps?\b|tokens?\b))"
    ),
    pattern_of(r"前\s?(?P<number>\d{1,3}|[一二两三四五六七八九十]{1,3})\s?[个名条]"),
)


def take_count(draft: Draft) -> None:
    """Take a number after 'top', 'best' or 'newest'; the words before it still say what comes first."""
    for pattern in _COUNTS:
        for match in draft.matches(pattern):
            number = _WORDS.get(match["number"]) or int(read_quantity(match["number"]))
            if number:
                draft.take(match.start("number") if match[0].isascii() else match.start(), match.end())
                draft.at_most = number if draft.at_most is None else min(number, draft.at_most)
