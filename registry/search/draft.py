"""A query while it is read: what has been understood is taken out of it, so that nothing is read twice."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Protocol

from registry.errors import Malformed
from registry.search.conditions import BenchmarkCondition, Condition, FieldCondition
from registry.search.numbers import write_shares
from registry.search.vocabulary import EXAMPLES

TAKEN: Final = "\x00"  # stands where something was taken out; a query cannot contain it
MAX_LENGTH: Final = 1_000  # characters
OPPOSITE: Final = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


class UnreadableQuery(Malformed):
    """The query means nothing, or more than one thing: the message says which, and the examples how to ask."""

    code = "unreadable-query"
    title = "The query could not be understood"
    examples: ClassVar[tuple[str, ...]] = EXAMPLES

    def __init__(self, message: str, **extras: Any) -> None:
        shown = "; ".join(f"'{example}'" for example in EXAMPLES[:3] + EXAMPLES[4:5])
        super().__init__(f"{message} Examples: {shown}.", examples=list(EXAMPLES), **extras)


class Known(Protocol):
    """Names that only the database knows; a reader without one understands the shipped tables alone."""

    def is_benchmark(self, name: str) -> bool: ...

    def is_run(self, name: str) -> bool: ...

    def metric(self, name: str) -> str | None:
        """The metric of some score that is called this in any case of letters; None where there is none."""
        ...

    def called(self, word: str) -> Sequence[str]:
        """Names of runs, families and projects of which the word is a part, as deduped is of pythia-1b-deduped."""
        ...

    def nearest(self, word: str) -> str:
        """'Did you mean pythia-1.4b?', of the names of runs, families, projects and benchmarks; '' where none is
        near."""
        ...

    def nearest_project(self, word: str) -> str:
        """The same of projects alone."""
        ...

    def run_kind(self, words: Sequence[str]) -> str | None:
        """The kind of some run that is one of these words, as it is spelled there; the first of the words goes before
        the others. None where there is none."""
        ...

    def family(self, name: str) -> str | None:
        """The family of some run's model that is called this in any case of letters; None where there is none."""
        ...

    def project(self, name: str) -> str | None:
        """The project that is called this in any case of letters; None where there is none."""
        ...


class Draft:
    """`text` as written (width folded), `low` the same in lower case with the taken parts blanked out."""

    def __init__(self, query: str) -> None:
        if len(query) > MAX_LENGTH:
            raise UnreadableQuery(f"The query has {len(query)} characters; at most {MAX_LENGTH} are read.")
        for place, letter in enumerate(query):
            if letter == TAKEN or "\ud800" <= letter <= "\udfff":
                raise UnreadableQuery(f"Character {place} of the query is no text (NUL or a lone surrogate).")
        text = write_shares(re.sub(r"\s+", " ", unicodedata.normalize("NFKC", query).translate(_QUOTES)))
        if re.search(r"\d{31}", text):
            raise UnreadableQuery("The query has a number of more than 30 digits.")
        low = text.lower()
        self.text = text if len(text) == len(low) else low  # a few capital letters grow when lowered
        self.low = low
        self._found: dict[tuple[int, int], tuple[Condition, ...]] = {}
        self.at_most: int | None = None  # results that the question asks for

    def matches(self, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        """Each match in what is left, even while matches are being taken out."""
        place = 0
        while match := pattern.search(self.low, place):
            yield match
            place = max(match.end(), place + 1)

    def take(self, start: int, end: int, *conditions: Condition) -> None:
        self._found[start, end] = (*self._found.get((start, end), ()), *conditions)
        self.low = self.low[:start] + TAKEN * (end - start) + self.low[end:]

    def taken(self, start: int, end: int) -> list[tuple[int, int]]:
        """Where each thing stood that was taken out between two places, the first one first."""
        return sorted(span for span in self._found if start <= span[0] < span[1] <= end)

    def negate(self, span: tuple[int, int]) -> bool:
        """Turn round what was taken there. False where its opposite is no single condition, or is not certain."""
        match self._found[span]:
            case (BenchmarkCondition() as one,):
                self._found[span] = (replace(one, relation=OPPOSITE[one.relation]),)
            case (FieldCondition() as one,) if one.relation != ">=" or not _SINCE.match(self.text, *span):
                self._found[span] = (_opposite(one),)
            case _:
                return False
        return True

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """What was found, in the order in which it was written."""
        return tuple(condition for _, found in sorted(self._found.items()) for condition in found)


def _opposite(condition: FieldCondition) -> FieldCondition:
    if isinstance(condition.threshold, bool):
        return replace(condition, threshold=not condition.threshold)
    if condition.field.startswith("pieces.") and condition.threshold == "present":
        return replace(condition, threshold="absent")
    return replace(condition, relation=OPPOSITE[condition.relation])


_SINCE = re.compile("from|从|自", re.IGNORECASE)  # 'not from Monday' may be 'before it' or 'of another day'


_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "；": ";", "，": ",", "。": ".", "`": None})
