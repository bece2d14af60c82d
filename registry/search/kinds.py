"""Reading of what kind a run is, of which family its model, and what is to come first: 'newest sft llama models'."""

import re
from typing import Final

from registry.search.conditions import FieldCondition
from registry.search.draft import Draft, Known, UnreadableQuery
from registry.search.patterns import pattern_of
from registry.search.reading import LOWEST_LOSS, MATCH, NEWEST, OLDEST, SMALLEST
from registry.search.vocabulary import NEWEST_WORDS, OLDEST_WORDS, RUN_KINDS
from registry.search.words import is_word


def _whole(word: str) -> str:
    return rf"(?<![a-z0-9_]){re.escape(word)}(?![a-z0-9_])" if word.isascii() else re.escape(word)


def _any(words: tuple[str, ...]) -> re.Pattern[str]:
    return pattern_of("|".join(_whole(word) for word in sorted(words, key=len, reverse=True)))


_LOSS: Final = (
    r"(?:训练\s?|(?<![a-z0-9_])(?:the\s+)?(?:train(?:ing)?\s+)?)?(?:(?<![a-z0-9_])loss(?:es)?(?![a-z0-9_])|损失值?)"
)
_FIRST: Final = r"(?:\s*first\b)?"
_LOWEST: Final = r"(?:\b(?:lowest|smallest|least|minimum|minimal|min|best)\b|最低|最小|最好|最优|最佳)"
_HIGHEST: Final = r"(?:\b(?:highest|largest|greatest|biggest|maximum|max|worst)\b|最高|最大|最差)"
_VAGUE: Final = r"(?:\b(?:low|lower|small|smaller|good|high|higher|bad)\b|[较很更]?(?:低|小|高|大|好))"


def _of_loss(how: str) -> re.Pattern[str]:
    """'the lowest loss', 最低的 loss, 'loss is lowest', loss 最低."""
    return pattern_of(
        rf"{how}\s*的?\s*{_LOSS}{_FIRST}(?!\s*最)|{_LOSS}\s*(?:(?:is|are|的?值?是?)\s*)?(?:the\s+)?{how}{_FIRST}"
    )


_ORDERS: Final = (
    (NEWEST, _any(NEWEST_WORDS)),
    (OLDEST, _any(OLDEST_WORDS)),
    (LOWEST_LOSS, _of_loss(_LOWEST)),
    (SMALLEST, pattern_of(rf"(?:\b(?:smallest|cheapest)\b{_FIRST}|最小|最便宜)(?!\s*的?\s*{_LOSS})")),
)
_OTHER_LOSS: Final = pattern_of(
    r"(?:\b(?:val(?:idation)?|eval(?:uation)?|dev|test|held[ -]?out)|验证集?|评测|测试集?)\s*(?:loss\b|损失)"
)
_NO_ORDER: Final = tuple(map(_of_loss, (_HIGHEST, _VAGUE)))
_KINDS: Final = {word: group for group in RUN_KINDS for word in group}
_KIND = pattern_of(
    rf"(?:(?:\b(?:run\s+)?kind\s*(?:=|:|of)?\s*|类型(?:是|为)?\s*)?(?P<kind>{_any(tuple(_KINDS)).pattern}))"
    r"(?:\s*(?:runs?\b|的)?)"
)
_RUNS: Final = pattern_of(r"\s*(?:runs?|models?|checkpoints?|ckpts?)\b")
# What somebody means to do with a checkpoint says nothing of the run that it is of: 'to fine-tune', 用来微调的.
_AIM: Final = pattern_of(
    r"(?:\b(?:for|to)\s+(?:(?:further|later|more|the|a|an|any|my|our|do|start|begin)\s+)*|"
    r"(?:适合|用来|用于|用作|拿来|拿去|想要?|方便)\s*(?:做|进行|再|继续)?\s*)$"
)
_BEFORE: Final = pattern_of(r"(?:\b(?:before|prior\s+to|until)\s+(?:(?:the|any|its|further)\s+)?|\bpre-)$")
_BEFORE_ZH: Final = pattern_of(r"\s*(?:之前|以前|前)")
_FAMILY_SAID = pattern_of(
    r"(?:\b(?:in|of|from)\s+)?\b(?:the\s+)?(?:model\s+)?family\s*(?:=|:|named|called|[为是叫])?\s*(?P<name>[a-z0-9][a-z0-9_.+\-]*)"
)
_FAMILY = pattern_of(
    r"(?:\b(?:in|of|from)\s+)?(?:\bthe\s+)?(?<![a-z0-9_.\-])(?P<name>[a-z0-9][a-z0-9_.+\-]*)(?P<word>\s*(?:family\b|series\b|系列|家族))?(?:\s*models?\b)?"
)


def take_order(draft: Draft) -> str:
    """Take 'newest', 'oldest', 'smallest' and 'lowest loss'; where several stand, the first one said.

    Raises UnreadableQuery for a loss that is called low or high and compared with no number.
    """
    found = [(match.start(), match.end(), order) for order, pattern in _ORDERS for match in draft.matches(pattern)]
    for start, end, _ in found:
        draft.take(start, end)
    for pattern in _NO_ORDER:
        for match in draft.matches(pattern):
            said = f"'{draft.text[match.start() : match.end()].strip()}' says no number"
            raise UnreadableQuery(f"{said}: write 'loss below 2', or 'lowest loss' to have the lowest first.")
    return min(found)[2] if found else MATCH


def refuse_other_losses(draft: Draft) -> None:
    """'Validation loss' is no field of a checkpoint: a run logs it under a name of its own. Raises UnreadableQuery."""
    for match in draft.matches(_OTHER_LOSS):
        what = f"'{match[0]}' is a metric that a run logs under a name of its own"
        raise UnreadableQuery(f"{what}: ask with the filter language, as in 'metrics.val_loss < 2'.")


def take_kinds(draft: Draft, known: Known | None) -> None:
    """Take kinds of runs: sft, 预训练, 'kind dpo'. Which spelling is meant, the database says.

    A kind that a checkpoint is wanted for is left as not understood; one that it is to come before is refused.
    """
    for match in draft.matches(_KIND):
        if _is_aim(draft, match):
            continue
        group = _KINDS[match["kind"]]
        spelling = known.run_kind(group) if known is not None else None
        draft.take(*match.span(), FieldCondition("run.kind", "=", spelling or group[0]))


def _is_aim(draft: Draft, match: re.Match[str]) -> bool:
    before, after = _BEFORE.search(draft.low, 0, match.start()), _BEFORE_ZH.match(draft.low, match.end("kind"))
    if before or after:
        start, end = before.start() if before else match.start(), after.end() if after else match.end("kind")
        raise UnreadableQuery(
            f"'{draft.text[start:end].strip()}' names no kind of run: say which is meant, as in 'pretrained models'."
        )
    runs = _RUNS.match(draft.low, match.end("kind"))
    return not runs and _AIM.search(draft.low, 0, match.start()) is not None


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
