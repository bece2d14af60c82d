"""Reading of what kind a run is, of which family its model, and what is to come first: 'newest sft llama models'."""

import re
from typing import Final

from registry.search.conditions import FieldCondition
from registry.search.draft import Draft, Known
from registry.search.reading import MATCH, NEWEST, OLDEST
from registry.search.vocabulary import NEWEST_WORDS, OLDEST_WORDS, RUN_KINDS
from registry.search.words import is_word


def _whole(word: str) -> str:
    return rf"(?<![a-z0-9_]){re.escape(word)}(?![a-z0-9_])" if word.isascii() else re.escape(word)


def _any(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(_whole(word) for word in sorted(words, key=len, reverse=True)))


_ORDERS: Final = ((NEWEST, _any(NEWEST_WORDS)), (OLDEST, _any(OLDEST_WORDS)))
_KINDS: Final = {word: group for group in RUN_KINDS for word in group}
_KIND = re.compile(
    rf"(?:(?:\b(?:run\s+)?kind\s*(?:=|:|of)?\s*|类型(?:是|为)?\s*)?(?P<kind>{_any(tuple(_KINDS)).pattern}))"
    r"(?:\s*(?:runs?\b|的)?)"
)
_FAMILY_SAID = re.compile(
    r"(?:\b(?:in|of|from)\s+)?\b(?:the\s+)?(?:model\s+)?family\s*(?:=|:|named|called)?\s*(?P<name>[a-z0-9][a-z0-9_.+\-]*)"
)
_FAMILY = re.compile(
    r"(?:\b(?:in|of|from)\s+)?(?:\bthe\s+)?(?<![a-z0-9_.\-])(?P<name>[a-z0-9][a-z0-9_.+\-]*)(?P<word>\s*(?:family\b|series\b|系列|家族))?(?:\s*models?\b)?"
)


def take_order(draft: Draft) -> str:
    """Take 'newest' and 'oldest', 最新的 and 最早的; where both stand, the first one said."""
    found = [(match.start(), match.end(), order) for order, pattern in _ORDERS for match in draft.matches(pattern)]
    for start, end, _ in found:
        draft.take(start, end)
    return min(found)[2] if found else MATCH


def take_kinds(draft: Draft, known: Known | None) -> None:
    """Take kinds of runs: sft, 预训练, 'kind dpo'. Which spelling is meant, the database says."""
    for match in draft.matches(_KIND):
        group = _KINDS[match["kind"]]
        spelling = known.run_kind(group) if known is not None else None
        draft.take(*match.span(), FieldCondition("run.kind", "=", spelling or group[0]))


def take_families(draft: Draft, known: Known | None) -> None:
    """Take families of models: 'family qwen', and any word that is the family of some run: 'llama models'."""
    for match in draft.matches(_FAMILY_SAID):
        if known is not None and (spelling := known.family(_name(draft, match))) is not None:
            _take_family(draft, match, spelling)
    for match in draft.matches(_FAMILY):
        name = _name(draft, match)
        said = match["word"] or not is_word(name.lower())
        if said and known is not None and (spelling := known.family(name)) is not None:
            draft.take(*match.span(), FieldCondition("run.model_family", "=", spelling))
    for match in draft.matches(_FAMILY_SAID):  # one that nobody has yet: nothing is found, and that is the answer
        if not is_word(_name(draft, match).lower()):
            _take_family(draft, match, _name(draft, match))


def _take_family(draft: Draft, match: re.Match[str], name: str) -> None:
    end = match.start("name") + len(_name(draft, match))
    draft.take(match.start(), end, FieldCondition("run.model_family", "=", name))


def _name(draft: Draft, match: re.Match[str]) -> str:
    return draft.text[match.start("name") : match.end("name")].rstrip(".,-")
