"""Words that change their neighbours: 'very', 'not', 'only', and the figure that a benchmark is read by."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from registry.evals.catalogue import catalogue
from registry.search.conditions import STRONG, WEAK
from registry.search.draft import Draft, Known, UnreadableQuery
from registry.search.refusals import ONLY_ADVICE
from registry.search.subjects import score_named
from registry.search.words import FAIRLY, NEGATED, VERY, Word, perplexity_of

_DEGREES: Final = {"very": VERY, "fairly": FAIRLY}
_JUDGED: Final = ("quality", "subject", "negation", *_DEGREES)


def without_only(words: Sequence[Word]) -> list[Word]:
    """Drop 'only' beside a field, where it says nothing more; 'only strong at math' is refused."""
    kept: list[Word] = []
    for place, word in enumerate(words):
        after = words[place + 1].role if place + 1 < len(words) else ""
        before = words[place - 1].role if place else ""
        if word.role == "only" and (after in _JUDGED or (before in _JUDGED and after != "taken")):
            raise UnreadableQuery(f"'{word.text}' {ONLY_ADVICE}.")
        if word.role == "not_only" and not any(each.text in ("but", "but also", "also") for each in words[place:]):
            raise UnreadableQuery(f"'{word.text}' says that there is more, and not what: leave it out, or name it.")
        if word.role not in ("only", "not_only"):
            kept.append(word)
    return kept


def with_figures(words: Sequence[Word], known: Known | None) -> list[Word]:
    """Read 'gsm8k.acc' and 'gsm8k acc' as the benchmark with its metric."""
    kept: list[Word] = []
    for word in words:
        own = score_named(word.text.lower(), known) if word.role == "unknown" else None
        beside = kept[-1] if kept and word.role == "unknown" and _is_benchmark(kept[-1]) else None
        joint = score_named(f"{beside.text} {word.text.lower()}", known) if beside is not None else None
        if own is not None:
            name = own.benchmark.name
            kept.append(replace(word, role="subject", text=name, metric=own.metric, filter=own.filter))
        elif beside is not None and joint is not None:
            kept[-1] = replace(beside, metric=joint.metric, filter=joint.filter)
        else:
            kept.append(word)
    return kept


def with_metrics(words: Sequence[Word]) -> list[Word]:
    """Join 'perplexity' with the benchmark beside it. One that stands alone is refused."""
    kept = list(words)
    for metric in [word for word in kept if word.role == "metric"]:
        place = kept.index(metric)
        beside = [at for at in (place - 1, place + 1) if 0 <= at < len(kept) and _is_benchmark(kept[at])]
        if not beside:
            raise UnreadableQuery(
                f"'{metric.text}' is a figure of a benchmark: name it, as in 'low wikitext perplexity'."
            )
        subject = kept[beside[0]]
        kept[beside[0]] = replace(subject, metric=perplexity_of(subject.text, metric.text))
        del kept[place]
    return kept


def _is_benchmark(word: Word) -> bool:
    return word.role == "subject" and word.metric is None and catalogue().capability(word.text) is None


def with_negations(draft: Draft, words: Sequence[Word]) -> Iterator[Word]:
    """Join 'very' and 'not' with the quality that they stand before; turn round a field that 'not' stands before.

    A 'not' before anything else is refused, and so is one whose opposite is no single condition ('not 7B').
    """
    degree: float | None = None
    negation: Word | None = None
    for place, word in enumerate(words):
        if word.role in _DEGREES:
            degree = _DEGREES[word.role]
        elif word.role == "negation":
            _refuse_lonely(negation, word)
            negation = word
        elif word.role == "quality":
            yield _qualified(negation, word, degree)
            degree = negation = None
        elif word.role == "taken":
            if negation is not None:
                _negate(draft, negation, word, words[place + 1 : place + 3])
            degree = negation = None
        else:
            _refuse_lonely(negation, word)
            degree = None
            yield word
    _refuse_lonely(negation, None)


def _qualified(negation: Word | None, word: Word, degree: float | None) -> Word:
    if negation is None:
        return word if degree is None else replace(word, degree=degree)
    other = WEAK if word.relation == STRONG else STRONG
    text = f"{negation.text} {word.text}"
    return replace(word, text=text, place=negation.place, relation=other, degree=NEGATED)


def _negate(draft: Draft, negation: Word, word: Word, following: Sequence[Word]) -> None:
    """Turn a field round. 'Not on local disk and annealed' may deny both, so that is refused."""
    shared = [each.role for each in following] == ["listing", "taken"] and following[0].text not in ",.;:、。"
    if shared or not draft.negate((word.place, word.end)):
        what = f"The opposite of '{word.text.strip()}', after '{negation.text}', is no single condition, or not certain"
        raise UnreadableQuery(f"{what}: say what is wanted, as in 'under 6B', 'no optimizer' or 'before 2026-11-01'.")


def _refuse_lonely(negation: Word | None, word: Word | None) -> None:
    if negation is not None:
        before = f" before '{word.text}'" if word is not None else ""
        raise UnreadableQuery(
            f"'{negation.text}'{before} negates nothing that can be searched: say 'weak' or 'strong'."
        )
