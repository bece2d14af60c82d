"""From words to conditions: which capability is asked to be strong, and which to be weak.

A clause is read as (P C+)+ ('strong math and code') or (C+ P)+ (数学和代码强), where P says how good and C what.
Anything else, such as a word that nobody knows between two capabilities, is refused rather than guessed at.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final

from registry.evals.catalogue import catalogue
from registry.search import vocabulary
from registry.search.conditions import STRONG, WEAK, CapabilityCondition, Condition, FieldCondition, StandingCondition
from registry.search.draft import TAKEN, Draft, Known, UnreadableQuery

# The percentile that each degree asks of a strong capability; a weak one is asked for 1 less it.
PLAIN, VERY, FAIRLY, NEGATED = 0.8, 0.95, 0.67, 0.5
_TABLES: Final = (
    *("strong", "strongest", "fairly_strong", "weak", "weakest", "very", "fairly", "negation", "break", "listing"),
    *("unsupported", "fillers", "opaque"),
)
_DEGREES: Final = {"very": VERY, "fairly": FAIRLY}
_QUALITIES: Final = {
    "strong": (STRONG, PLAIN),
    "strongest": (STRONG, VERY),
    "fairly_strong": (STRONG, FAIRLY),
    "weak": (WEAK, PLAIN),
    "weakest": (WEAK, VERY),
}


@dataclass(frozen=True, slots=True)
class Word:
    """`role` is quality, subject, negation, listing, break, unknown or the name of a table of the vocabulary."""

    role: str
    text: str
    place: int
    relation: str = ""
    degree: float = PLAIN


def read_clauses(draft: Draft, known: Known | None) -> tuple[str, ...]:
    """Take capabilities and benchmarks with how good they are to be; returns the words not understood."""
    words = list(_words(draft, known))
    for word in words:
        if word.role == "unsupported":
            what = f"'{word.text}' asks for a comparison or a choice, and conditions are joined by 'and' only"
            raise UnreadableQuery(f"{what}: ask in two queries, or in the filter language.")
    qualified = list(_with_negations(words))
    left: list[Word] = []
    for is_break, group in groupby(qualified, key=lambda word: word.role == "break"):
        if not is_break:
            left += _read_clause(draft, list(group))
    return _joined(sorted(left, key=lambda word: word.place))


def _joined(words: list[Word]) -> tuple[str, ...]:
    """The texts of words, with letters that stood side by side in one piece (Chinese is read letter by letter)."""
    texts: list[str] = []
    end = -1
    for word in words:
        if texts and word.place == end and not word.text.isascii():
            texts[-1] += word.text
        else:
            texts.append(word.text)
        end = word.place + len(word.text)
    return tuple(texts)


def _read_clause(draft: Draft, words: list[Word]) -> list[Word]:
    """Take the conditions of one clause; returns its words that mean nothing here."""
    unknown = [word for word in words if word.role == "unknown"]
    subjects = [word for word in words if word.role == "subject"]
    if not subjects:  # 'a good checkpoint': good at nothing in particular
        return unknown + [word for word in words if word.role == "quality"]
    for quality, subject in _pairs(words):
        draft.take(subject.place, subject.place, _condition(quality, subject))
    return unknown


def _pairs(words: list[Word]) -> list[tuple[Word, Word]]:
    """Each subject with its quality. Raises UnreadableQuery where there is more than one reading, or none."""
    whole = _pair_up(words)
    if whole is not None:
        return whole
    pieces = [list(group) for is_list, group in groupby(words, key=lambda word: word.role == "listing") if not is_list]
    pairs = [_pair_up(piece) for piece in pieces if any(word.role != "unknown" for word in piece)]
    if all(pairs):
        return [pair for piece in pairs if piece for pair in piece]
    text = " ".join(word.text for word in words if word.role != "listing")
    lonely = not any(word.role == "quality" for word in words)
    wanted = "say whether it should be strong or weak" if lonely else "say 'strong X but weak Y'"
    raise UnreadableQuery(f"'{text}' can be read in more than one way, or in none: {wanted}.")


def _pair_up(words: Sequence[Word]) -> list[tuple[Word, Word]] | None:
    marks = {"quality": "P", "subject": "C", "unknown": "u", "listing": ""}
    shape = "".join(marks[word.role] for word in words)
    if re.search("Cu+C", shape):
        return None  # 'mediocre' may stand there
    plain = re.sub("u", "", shape)
    if re.fullmatch("(PC+)+", plain):
        ordered = list(words)
    elif re.fullmatch("(C+P)+", plain):
        ordered = list(reversed(words))
    else:
        return None
    pairs: list[tuple[Word, Word]] = []
    quality = ordered[0]
    for word in ordered:
        if word.role == "quality":
            quality = word
        elif word.role == "subject":
            pairs.append((quality, word))
    return pairs


def _condition(quality: Word, subject: Word) -> Condition:
    degree = quality.degree if quality.relation == STRONG else round(1 - quality.degree, 4)
    capability = catalogue().capability(subject.text)
    if capability is not None:
        return CapabilityCondition(capability.name, quality.relation, degree)
    benchmark = catalogue().get(subject.text)
    return StandingCondition(benchmark.name if benchmark else subject.text, quality.relation, degree)


def _with_negations(words: list[Word]) -> Iterator[Word]:
    """Join 'very' and 'not' with the quality that they stand before. A 'not' before anything else is refused."""
    degree: float | None = None
    negation: Word | None = None
    for word in words:
        if word.role in _DEGREES:
            degree = _DEGREES[word.role]
        elif word.role == "negation":
            negation = word
        elif word.role == "quality":
            if negation is not None:
                other = WEAK if word.relation == STRONG else STRONG
                yield Word("quality", f"{negation.text} {word.text}", negation.place, other, NEGATED)
            else:
                yield Word("quality", word.text, word.place, word.relation, word.degree if degree is None else degree)
            degree = negation = None
        else:
            _refuse_lonely(negation, word)
            degree = None
            yield word
    _refuse_lonely(negation, None)


def _refuse_lonely(negation: Word | None, word: Word | None) -> None:
    if negation is not None:
        before = f" before '{word.text}'" if word is not None else ""
        raise UnreadableQuery(
            f"'{negation.text}'{before} negates nothing that can be searched: say 'weak' or 'strong'."
        )


def _words(draft: Draft, known: Known | None) -> Iterator[Word]:
    """The words of what is left of the draft. Fillers are dropped; fields are taken as they are met."""
    for match in draft.matches(_scanner()):
        text, place = match[0], match.start()
        if text in vocabulary.FIELD_WORDS:
            conditions = (FieldCondition(*term) for term in vocabulary.FIELD_WORDS[text])
            draft.take(place, match.end(), *conditions)
            continue
        role = _roles().get(text)
        if role is None:
            role = "subject" if _is_benchmark(text, known) else "unknown"
        if role in _QUALITIES:
            relation, degree = _QUALITIES[role]
            yield Word("quality", text, place, relation, degree)
        elif role != "fillers":
            shown = draft.text[place : match.end()] if role == "unknown" else text
            yield Word("unknown" if role == "opaque" else role, shown, place)


def _is_benchmark(text: str, known: Known | None) -> bool:
    if known is not None and known.is_benchmark(text):
        return True
    return text not in vocabulary.EVERYDAY_BENCHMARKS and catalogue().get(text) is not None


def is_word(text: str) -> bool:
    """Whether the vocabulary has this word, so that it is no name unless a query says that it is one."""
    return text in _roles() or catalogue().get(text) is not None


@cache
def _roles() -> dict[str, str]:
    """What each word of the vocabulary is; a capability's name wins over everything."""
    roles = {word: table for table in reversed(_TABLES) for word in getattr(vocabulary, table.upper())}
    capabilities = (word for each in catalogue().capabilities for word in (each.name, *each.synonyms))
    return (
        roles
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
    listed = sorted({*_roles(), *vocabulary.FIELD_WORDS}, key=len, reverse=True)
    known = "|".join(_whole(word) for word in listed)
    return re.compile(rf"{known}|[a-z0-9][a-z0-9_.+\-']*(?<![.\-'])|[^\sa-z0-9{TAKEN}\"'*-]+?")


def _whole(word: str) -> str:
    if not word.isascii():
        return re.escape(word)
    start = r"(?<![a-z0-9_])" if word[0].isalnum() else ""
    end = r"(?![a-z0-9_])" if word[-1].isalnum() else ""
    return f"{start}{re.escape(word)}{end}"
