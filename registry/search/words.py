"""The words of a query, each with its role: how good, at what, not, and, or nothing that anybody listed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Final

from registry.evals.catalogue import LOG_METRICS, catalogue
from registry.search import vocabulary
from registry.search.conditions import STRONG, WEAK, FieldCondition
from registry.search.draft import TAKEN, Draft, Known
from registry.search.field_words import FIELD_WORDS
from registry.search.numbers import read_quantity
from registry.search.patterns import pattern_of
from registry.search.refusals import UNSUPPORTED

# The percentile that each degree asks of a strong capability; a weak one is asked for 1 less it.
PLAIN, VERY, FAIRLY, NEGATED = 0.8, 0.95, 0.67, 0.5
_TABLES: Final = (
    *("strong", "strongest", "fairly_strong", "weak", "weakest", "above_average", "below_average"),
    *("very", "fairly", "negation", "break", "listing", "metric", "only", "fillers", "opaque"),
)
_QUALITIES: Final = {
    "strong": (STRONG, PLAIN),
    "strongest": (STRONG, VERY),
    "fairly_strong": (STRONG, FAIRLY),
    "weak": (WEAK, PLAIN),
    "weakest": (WEAK, VERY),
    "above_average": (STRONG, NEGATED),
    "below_average": (WEAK, NEGATED),
}
_SHARE: Final = (
    r"(?P<share>(?:\b(?P<end>top|bottom|best|worst)\s*|[前后]\s*)(?P<number>\d{1,2}(?:\.\d+)?)\s*(?:%|percent\b))"
)
_DENIED: Final = r"(?P<denied>(?<![a-z0-9])[!-](?=[a-z]))"  # '!strong', '-math'
_TAKEN: Final = rf"(?P<taken>{TAKEN}+)"


@dataclass(frozen=True, slots=True)
class Word:
    """`role` is quality, subject, negation, listing, break, taken, unknown or the name of a table of words.

    `taken` stands for what was taken out before. `by_value`: the quality speaks of the number. `metric` and `filter`:
    the figure of a subject that is meant.
    """

    role: str
    text: str
    place: int
    relation: str = ""
    degree: float = PLAIN
    by_value: bool = False
    metric: str | None = None
    filter: str | None = None
    end: int = 0


def read_words(draft: Draft, known: Known | None) -> Iterator[Word]:
    """The words of what is left of the draft. Fillers are dropped; fields are taken as they are met."""
    for match in draft.matches(_scanner()):
        text, place, end = match[0], match.start(), match.end()
        if match["taken"]:
            for start, stop in draft.taken(place, end):
                yield Word("taken", draft.text[start:stop], start, end=stop)
        elif text in FIELD_WORDS:
            draft.take(place, end, *(FieldCondition(*term) for term in FIELD_WORDS[text]))
            yield Word("taken", draft.text[place:end], place, end=end)
        elif match["share"]:
            weak = match["end"] in ("bottom", "worst") or text.startswith("后")
            share = read_quantity(match["number"]) / 100
            yield Word("quality", text, place, WEAK if weak else STRONG, round(1 - share, 4))
        elif match["denied"]:
            yield Word("negation" if text == "!" else "unsupported", text, place)
        elif word := _listed(draft.text[place:end], text, place, known):
            yield word


def _listed(shown: str, text: str, place: int, known: Known | None) -> Word | None:
    if text in vocabulary.PEOPLE:
        return Word("subject", vocabulary.PEOPLE[text], place)
    role = roles().get(text)
    if role is None:
        role = "subject" if _is_benchmark(text, known) else "unknown"
    if role in _QUALITIES:
        relation, degree = _QUALITIES[role]
        return Word("quality", text, place, relation, degree, by_value=text in vocabulary.VALUES)
    if role == "fillers":
        return None
    return Word("unknown" if role == "opaque" else role, shown if role == "unknown" else text, place)


def _is_benchmark(text: str, known: Known | None) -> bool:
    if known is not None and known.is_benchmark(text):
        return True
    return text not in vocabulary.EVERYDAY_BENCHMARKS and catalogue().get(text) is not None


def is_word(text: str) -> bool:
    """Whether the vocabulary has this word, so that it is no name unless a query says that it is one."""
    return text in roles() or catalogue().get(text) is not None


def perplexity_of(benchmark: str, word: str) -> str:
    """The metric of a benchmark that 'perplexity' or 'ppl' means: the first of its perplexities in the table."""
    row = catalogue().get(benchmark)
    rows = [each for each in catalogue().benchmarks if row is not None and each.name == row.name]
    found = [metric for each in rows for metric, _ in each.metrics if metric in LOG_METRICS]
    return word if word in found else next(iter(found), "perplexity")


@cache
def roles() -> dict[str, str]:
    """What each word of the vocabulary is; a capability's name wins over everything."""
    listed = {word: table for table in reversed(_TABLES) for word in getattr(vocabulary, table.upper())}
    capabilities = (word for each in catalogue().capabilities for word in (each.name, *each.synonyms))
    return (
        listed
        | dict.fromkeys(UNSUPPORTED, "unsupported")
        | vocabulary.PHRASES
        | dict.fromkeys(_spaced_benchmarks(), "subject")
        | dict.fromkeys(capabilities, "subject")
    )


def _spaced_benchmarks() -> Iterator[str]:
    """Names of benchmarks with a space for their separators: mt bench, arc challenge."""
    for row in catalogue().benchmarks:
        for name in (row.name, *row.aliases):
            spaced = re.sub(r"[_-]+", " ", name.lower())
            if " " in spaced and row.part_of is None and "*" not in name:
                yield spaced


@cache
def _scanner() -> re.Pattern[str]:
    """Any word of the vocabulary, the longest first; then a word of letters; then any other single character."""
    known = "|".join(_whole(word) for word in sorted({*roles(), *FIELD_WORDS}, key=len, reverse=True))
    other = rf"[a-z0-9][a-z0-9_.+\-']*(?<![.\-'])|[^\sa-z0-9{TAKEN}\"'*-]+?"
    return pattern_of(f"{_TAKEN}|{_SHARE}|{_DENIED}|{known}|{other}")


def _whole(word: str) -> str:
    if not word.isascii():
        return re.escape(word)
    start = r"(?<![a-z0-9_])" if word[0].isalnum() else ""
    end = r"(?![a-z0-9_])" if word[-1].isalnum() else ""
    return f"{start}{re.escape(word)}{end}"
