"""From words to conditions: which capability is asked to be strong, and which to be weak.

A clause is read as (P C+)+ ('strong math and code') or (C+ P)+ (数学和代码强), where P says how good and C what.
Anything else, such as a word that nobody knows between two capabilities, is refused rather than guessed at.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from registry.evals.catalogue import catalogue
from registry.search.conditions import STRONG, CapabilityCondition, Condition, StandingCondition
from registry.search.draft import Draft, Known, UnreadableQuery
from registry.search.leftovers import refuse_leftovers
from registry.search.modifiers import with_figures, with_metrics, with_negations, without_only
from registry.search.refusals import advice
from registry.search.words import Word, read_words
from registry.types import Direction


def read_clauses(draft: Draft, known: Known | None) -> tuple[str, ...]:
    """Take capabilities and benchmarks with how good they are to be; returns the words not understood."""
    words = with_figures(list(read_words(draft, known)), known)
    for word in words:
        if word.role == "unsupported":
            raise UnreadableQuery(f"'{word.text}' {advice(word.text)}.")
    refuse_leftovers(_joined([word for word in words if word.role == "unknown"]), known)
    qualified = with_negations(draft, with_metrics(without_only(words)))
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
    name = benchmark.name if benchmark else subject.text
    if catalogue().for_metric(name, subject.metric or "", subject.filter or "").direction is Direction.TARGET:
        what = f"{name} is best in the middle of its scale, so '{quality.text}' does not say which scores are meant"
        raise UnreadableQuery(f"{what}: say '{name} between 0.45 and 0.55'.")
    return StandingCondition(name, quality.relation, degree, subject.metric, quality.by_value, subject.filter)
