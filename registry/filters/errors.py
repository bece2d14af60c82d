"""What is wrong with a filter, shown at its place."""

import unicodedata
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, Self

from registry.errors import Malformed

WINDOW = 72  # characters of the line that a message shows around the place
MOST_SHOWN = 14  # of what was expected; `expected` holds all of it


class InvalidFilter(Malformed):
    """`position`: 0-based character offset into the text; `expected`: what could stand there, in words.

    The message counts characters from 1, as people do.
    """

    code = "invalid-filter"
    title = "The filter could not be read"

    def __init__(
        self,
        problem: str,
        text: str,
        position: int,
        expected: Sequence[str] = (),
        *,
        hint: str = "",
        **extras: Any,
    ) -> None:
        shown = [*expected[:MOST_SHOWN], "…"] if len(expected) > MOST_SHOWN else expected
        wanted = f" Expected {in_words(shown)}." if shown else ""
        tail = f" {hint}" if hint else ""
        message = f"At character {position + 1}: {problem}.{wanted}{tail}\n{_shown(text, position)}"
        super().__init__(message, position=position, expected=list(expected), **extras)
        self.problem = problem

    def within(self, parameter: str) -> Self:
        """The same mistake, named after the parameter that it stands in: filter, order_by or fields."""
        self.extras["parameter"] = parameter
        self.title = f"The {parameter} could not be read"  # type: ignore[misc]  # of this one error
        if parameter != "filter":
            self.message = f"In {parameter}, at character{self.message.removeprefix('At character')}"
            self.args = (self.message,)
        return self


def in_words(items: Sequence[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " or " + items[-1]


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A question naming the nearest known words, or nothing where none is near."""
    lowered = {name.lower(): name for name in known}
    near = [lowered[name] for name in get_close_matches(word[:64].lower(), list(lowered), n=3, cutoff=0.6)]
    return f"Did you mean {in_words(near)}?" if near else ""


def _shown(text: str, position: int) -> str:
    """The line that holds the position, clipped to a window, and a caret below the character."""
    start = text.rfind("\n", 0, position) + 1
    end = text.find("\n", position)
    line, column = text[start : len(text) if end < 0 else end], position - start
    first = max(0, column - WINDOW // 2)
    before, after = line[first:column], line[column : first + WINDOW]
    lead, rest = ("…" if first else ""), ("…" if first + WINDOW < len(line) else "")
    indent = sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in lead + before)
    return f"  {_printable(lead + before + after + rest)}\n  {' ' * indent}^"


def _printable(line: str) -> str:
    """Control characters and surrogates would break the line, or could not be sent at all."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line)
