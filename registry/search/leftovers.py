"""What was not understood, and is too much to be passed over: a number, a comparison, a misspelt word."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from registry.evals.catalogue import catalogue
from registry.filters.errors import in_words
from registry.search import vocabulary
from registry.search.draft import Known, UnreadableQuery
from registry.search.field_words import FIELD_WORDS
from registry.search.patterns import pattern_of
from registry.search.words import roles

_NUMBER: Final = pattern_of(
    r"[+\-.]?\d|[<>≤≥≠%]|[〇零一二两三四五六七八九十百千万亿]{2}|"
    r"[前后第每][一二两三四五六七八九十百千万]|[二两三四五六七八九十百千万][成个步次倍名位天周月年轮]"
)
_OTHER_SCRIPT: Final = pattern_of("[\u0370-\u07ff\u0900-\u11ff\u3040-\u30ff\uac00-\ud7af]+")
_DENIED: Final = pattern_of("(?:non|un|in)-?(.+)")
_SHORTEST: Final = 4  # letters: 'caht' is chat, and 'map' may be anything
MOST_NAMES: Final = 20  # words that are looked for in the names of runs
_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
_NAME: Final = pattern_of(r"(?=.*[\d_])[a-z][a-z0-9_.=+,/\-]*")
_PART: Final = pattern_of(rf"[a-z][a-z\-]{{{_SHORTEST - 1},}}")
_COMPARED: Final = ("strong", "strongest", "weak", "weakest", "negation", "subject", "metric")


def refuse_leftovers(words: Sequence[str], known: Known | None = None) -> None:
    """Raises UnreadableQuery where something among the words not understood would change what the rest means."""
    for word in words:
        if letters := "".join(_OTHER_SCRIPT.findall(word)):
            raise UnreadableQuery(f"Questions are read in English and in Chinese; '{letters[:40]}' is neither.")
    for word in words:
        if _NUMBER.match(word) or (not word.isascii() and _NUMBER.search(word)):
            what = f"'{word}' was not understood"
            raise UnreadableQuery(f"{what}: say what the number is of, as in 'mmlu > 60%' or 'before step 50000'.")
    near = {word: found for word in words if (found := _near(word.lower()))}
    if near:
        said, meant = (", ".join(f"'{each}'" for each in words) for words in (near, near.values()))
        raise UnreadableQuery(f"Not understood: {said}. Did you mean {meant}?")
    if known is not None:
        for word in words[:MOST_NAMES]:
            _refuse_name(word, known)


def _refuse_name(word: str, known: Known) -> None:
    """A name that nobody has, and a part of names, would bound the answer if they were understood."""
    if _NAME.fullmatch(word.lower()):
        raise UnreadableQuery(
            f"No run, model, project or benchmark here is called '{word}'. {known.nearest(word)}".rstrip()
        )
    if _PART.fullmatch(word.lower()) and (called := known.called(word)):
        some = in_words([f"'{name}'" for name in called])
        raise UnreadableQuery(
            f"'{word}' is a part of names, as of {some}: write a whole name, or filter by run.name like '%{word}%'."
        )


def _near(word: str) -> str | None:
    """The word of the vocabulary that is one slip away; None where there is none."""
    if len(word) < _SHORTEST or not word.isascii() or word in roles():
        return None
    if (denied := _DENIED.fullmatch(word)) and denied[1] in _vocabulary():
        return f"not {denied[1]}"
    found = sorted(_vocabulary() & set(_slips(word)))
    return found[0] if found else None


def _slips(word: str) -> Iterator[str]:
    """Two letters changed about, one left out, another one, one too many."""
    for place in range(len(word) + 1):
        head, tail = word[:place], word[place:]
        yield from (head + letter + tail for letter in _LETTERS)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in _LETTERS)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


@cache
def _vocabulary() -> frozenset[str]:
    listed = {word for word, role in roles().items() if role in _COMPARED} | FIELD_WORDS.keys()
    benchmarks = {row.name.lower() for row in catalogue().benchmarks if row.part_of is None}
    words = listed | benchmarks - vocabulary.EVERYDAY_BENCHMARKS
    return frozenset(word for word in words if len(word) >= _SHORTEST and word.isascii())
