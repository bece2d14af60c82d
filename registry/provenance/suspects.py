"""Which of the changes between two checkpoints may explain what got worse, ranked; a suspicion, never a verdict.

score = prior(class, capability) x magnitude x likelihood ratio, as shares of their sum. The priors are assumed: nobody
measured them. The likelihood ratio comes from earlier pairs where there are enough, else it is 1. Only reverting a
change and training a short branch confirms it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from registry.provenance.association import Association, PastPair, associate, chance_of_fall, change_sets
from registry.provenance.config_diff import ConfigChange, canonical, canonical_path
from registry.provenance.data_mix import MixChange
from registry.wording import counted

# [assumed] How likely a change of each kind is to move a capability, before anything is known of it.
PRIOR_TIED_SOURCE = 3.0  # a data source that teaches the very capability
PRIOR_LEARNING_RATE = 1.5
PRIOR_MODEL_SIZE = 3.0  # how many parameters there are: what holds every capability, and what settings follow from
PRIOR_FEEDING = 1.0  # sequence length, loader code, tokenizer, another data version: what the model sees, and how
PRIOR_DIRECT = 3.0  # the one was made from the other by this alone: quantised, merged, distilled, fine-tuned
PRIOR_ON_THE_WAY = 1.0  # such an edge among others
PRIOR_OTHER = 0.3
PRIOR_INERT = 0.02

# Words in the name of a data source that tie it to a capability.
TIED_WORDS: dict[str, tuple[str, ...]] = {
    "math": ("math", "arxiv", "proof", "gsm", "numina", "algebra", "stackexchange"),
    "code": ("code", "github", "starcoder", "stack", "python", "program"),
    "knowledge": ("wiki", "book", "pes2o", "paper", "encyclop", "knowledge", "s2orc"),
    "reasoning": ("reason", "logic", "cot", "math", "code"),
    "reading": ("book", "wiki", "news", "gutenberg", "cc"),
    "instruction": ("instruct", "sft", "flan", "hermes", "alpaca", "tulu"),
    "chat": ("chat", "dialog", "sft", "hermes", "reddit", "eli5", "sharegpt", "ultrachat", "forum"),
    "safety": ("safety", "harm", "refus", "toxic"),
    "multilingual": ("multiling", "mc4", "lang", "madlad", "translat"),
    "chinese": ("zh", "chinese", "cmn", "wudao"),
    "longcontext": ("long", "book", "repo"),
    "agent": ("tool", "agent", "function"),
    "lm": ("web", "cc", "pile", "c4"),
}
MODEL_SIZE = "run.parameter_count"
# What a class of changes is of, in a sentence.
SUBJECTS = {"env": "the environment", "parallel": "the parallel layout", "code": "the code"}
_FEEDING = re.compile(
    r"^data_version$|^tokens_seen$|sequence_length|seq_len|max_position|loader|tokeniz|vocab|packing|shuffle|blend|chat_template"
)
_POSITION = re.compile(r"(?:\.\d+)+$")


@dataclass(frozen=True, slots=True)
class Change:
    """One thing that changed. `key` is the name under which earlier pairs know it; `magnitude` lies in 0 .. 1."""

    key: str
    kind: str
    magnitude: float
    words: str
    source: str | None = None  # the data source, where it is one
    direct: bool = False  # it is how the one came from the other, with nothing else between
    part_of: str | None = None  # the key of the change that this is one side of, and one change with


@dataclass(frozen=True, slots=True)
class Tested:
    """What reverting a change showed: confirmed (the score came back) or cleared, on which branch, said by whom."""

    verdict: str
    branch_id: int | None
    note: str | None
    created_by: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Suspect:
    """A set of changes that nothing tells apart. `share` of all suspicion; the factors of its score beside it.

    `tested`: what became of it when somebody reverted it and trained a short branch.
    """

    changes: tuple[str, ...]
    strength: str
    share: float
    reasons: tuple[str, ...]
    prior: float
    magnitude: float
    likelihood_ratio: float
    association: Association | None = None
    tested: Tested | None = None


def standing_out(suspects: Sequence[Suspect]) -> Sequence[Suspect]:
    """Those that may be named first: a weak suspect is only one of many."""
    return [each for each in suspects if each.strength in ("strong", "some")]


def relative_change(old: float, new: float) -> float:
    """|a - b| / max(|a|, |b|): 0 for equal, .5 for halved or doubled, 1 for added or dropped."""
    largest = max(abs(old), abs(new))
    return min(1.0, abs(old - new) / largest) if largest else 0.0


def changes_of_config(changes: Iterable[ConfigChange], within: str = "config") -> list[Change]:
    """One change per path; the positions of a list count as one path. `within` is where the paths belong.

    What one side did not record at all is no change that anybody knows of, and a null is as good as an absent value.
    """
    found: dict[str, Change] = {}
    for each in changes:
        if each.not_recorded_on is not None or each.is_absence:
            continue
        path = _POSITION.sub("", canonical_path(each.path))
        words = f"{each.path} {_told(each)}"
        change = Change(f"{within}.{path}", each.kind, _magnitude(each), words)
        known = found.get(change.key)
        if known is None or change.magnitude > known.magnitude:
            found[change.key] = change
    return list(found.values())


def _magnitude(change: ConfigChange) -> float:
    old, new = canonical(change.old), canonical(change.new)
    if change.kind == "env" or isinstance(old, bool | str | None) or isinstance(new, bool | str | None):
        return 1.0  # of a version number, how far it went says nothing
    return relative_change(float(old), float(new))


def _told(change: ConfigChange) -> str:
    if change.change == "changed":
        return f"went from {_short(change.old)} to {_short(change.new)}"
    return f"was {change.change} ({_short(change.new if change.change == 'added' else change.old)})"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def changes_of_mix(mix: MixChange) -> list[Change]:
    """One change per data source whose share changed, sized by tokens where both are known; none of an unknown mix."""
    found = []
    for each in mix.sources:
        if each.old_share is None or each.new_share is None or abs(each.old_share - each.new_share) < 1e-9:
            continue
        old, new, unit = each.old_tokens, each.new_tokens, "tokens"
        if old is None or new is None:
            old, new, unit = each.old_share, each.new_share, "share"
        if unit == "tokens" and relative_change(old, new) < 1e-9:
            continue  # as much of it was seen; only what was seen of others moved its share
        amounts = f"{_amount(old, unit)} to {_amount(new, unit)}"
        words = f"data source {each.source} went from {amounts}"
        found.append(Change(f"data.{each.source}", "data", relative_change(old, new), words, each.source))
    return found


def _amount(value: float, unit: str) -> str:
    return f"{100 * value:.1f} % of the mix" if unit == "share" else in_tokens(value)


def in_tokens(value: float) -> str:
    """30B tokens, 1.5M tokens, 50k tokens, 300 tokens."""
    for size, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter} tokens"
    return f"{value:.0f} tokens"


def prior(change: Change, capabilities: Iterable[str]) -> tuple[float, str]:
    """(assumed prior, why): the largest that any of the fallen capabilities gives it."""
    if change.kind == "lineage":
        if change.direct:
            return PRIOR_DIRECT, "it made the one from the other"
        return PRIOR_ON_THE_WAY, "it lies on the way from one to the other"
    if change.key == MODEL_SIZE:
        return PRIOR_MODEL_SIZE, "the size of a model reaches every capability"
    if change.kind == "inert":
        return PRIOR_INERT, "it should not reach the model at all"
    if change.source is not None:
        name = change.source.lower()
        for capability in capabilities:
            if any(word in name for word in TIED_WORDS.get(capability, ())):
                return PRIOR_TIED_SOURCE, f"this source feeds {capability}"
        return PRIOR_OTHER, "this source is not known to feed what fell"
    if change.key.startswith("code.") and change.kind in ("data", "tokenizer"):
        return PRIOR_FEEDING, "it changes what the model reads"
    last = change.key.rsplit(".", 1)[-1]
    if last in ("learning_rate", "max_lr", "peak_lr"):
        return PRIOR_LEARNING_RATE, "the learning rate reaches every capability"
    if change.kind == "tokenizer" or _FEEDING.search(change.key):
        return PRIOR_FEEDING, "it changes what the model reads"
    what = "" if change.kind == "other" else f"a change of {SUBJECTS.get(change.kind, f'the {change.kind}')}, with "
    return PRIOR_OTHER, f"{what}no known tie to what fell"


def rank_suspects(
    changes: Sequence[Change], capabilities: Sequence[str], history: Iterable[PastPair] = ()
) -> list[Suspect]:
    """The suspects for a fall of `capabilities`, strongest first; with no history every likelihood ratio is 1.

    How the one was made from the other comes before all else, since the rest may follow from it.
    """
    by_key = {change.key: change for change in changes}
    pairs = list(history)
    known = associate(list(by_key), pairs) if pairs else {}
    scored = []
    for keys in _with_parts(change_sets(list(by_key), pairs), by_key):
        members = [by_key[key] for key in keys]
        factors = [(*prior(each, capabilities), each.magnitude, _ratio(known.get(each.key)), each) for each in members]
        best = max(factors, key=lambda item: item[0] * item[2] * item[3])
        scored.append((best[0] * best[2] * best[3], members, best))
    total = sum(score for score, _, _ in scored)
    suspects = [_suspect(score / total if total else 0.0, members, best, known) for score, members, best in scored]
    direct = {change.key for change in changes if change.direct}
    return sorted(suspects, key=lambda each: (direct.isdisjoint(each.changes), -each.share, each.changes))


def _with_parts(sets: Sequence[tuple[str, ...]], by_key: Mapping[str, Change]) -> list[tuple[str, ...]]:
    """The sets that hold a change or one of its parts as one, the change itself first."""
    wholes = {each.part_of for each in by_key.values() if each.part_of is not None}
    for whole in wholes & by_key.keys():
        ours = {whole, *(each.key for each in by_key.values() if each.part_of == whole)}
        joined = [keys for keys in sets if not ours.isdisjoint(keys)]
        rest = [key for keys in joined for key in keys if key != whole]
        sets = [(whole, *rest), *(keys for keys in sets if keys not in joined)]
    return list(sets)


def _ratio(association: Association | None) -> float:
    return association.likelihood_ratio if association is not None and association.is_counted else 1.0


def _suspect(
    share: float,
    members: list[Change],
    best: tuple[float, str, float, float, Change],
    known: dict[str, Association],
) -> Suspect:
    weight, why, magnitude, ratio, leading = best
    association = known.get(leading.key)
    parts = [each.words for each in members if each.part_of is not None]
    reasons = [*(each.words for each in members if each.part_of is None)]
    reasons += [f"the same change in the config: {', '.join(parts)}"] if parts else []
    reasons.append(f"{why} (assumed prior {weight:g})")
    if len(members) - len(parts) > 1:
        reasons.append("these changed together in nearly every earlier pair, so nothing tells them apart")
    reasons.append(_past(association))
    shown = association is not None and association.is_shown
    strength = "strong" if shown and share >= 0.3 else "some" if share >= 0.1 and weight > PRIOR_INERT else "weak"
    names = tuple(each.key for each in members)
    return Suspect(names, strength, share, tuple(reasons), weight, magnitude, ratio, association)


def with_tests(suspects: Sequence[Suspect], tests: Mapping[str, Tested]) -> list[Suspect]:
    """The suspects with what became of those that somebody tested: confirmed ones first, cleared ones last.

    A cleared suspect keeps no share, and the others divide its part; a set is cleared where each of its changes is.
    """
    found = [_with_test(each, [tests[key] for key in each.changes if key in tests]) for each in suspects]
    total = sum(each.share for each in found)
    if total > 0:
        found = [replace(each, share=each.share / total) for each in found]
    order = {"confirmed": 0, "cleared": 2}
    return sorted(found, key=lambda each: order.get(each.tested.verdict if each.tested else "", 1))


def _with_test(suspect: Suspect, tests: Sequence[Tested]) -> Suspect:
    confirmed = [each for each in tests if each.verdict == "confirmed"]
    if confirmed:
        reason = "confirmed: reverting it and training a short branch brought the score back"
        return replace(suspect, strength="strong", tested=confirmed[0], reasons=(reason, *suspect.reasons))
    if tests and len(tests) == len(suspect.changes):
        reason = "cleared: reverting it did not bring the score back"
        return replace(suspect, strength="weak", share=0.0, tested=tests[0], reasons=(reason, *suspect.reasons))
    return suspect


def _past(association: Association | None) -> str:
    if association is None:
        return "no earlier pairs to compare with"
    if not association.changed_pairs:
        return "no earlier pair had this change"
    if not association.is_counted:
        pairs = counted(association.changed_pairs, "earlier pair")
        families = counted(association.families, "run family", "run families")
        return f"{pairs} of {families} had this change: too few to say anything"
    fell, held = chance_of_fall(association.counts)
    past = f"fell in {fell:.0%} of earlier pairs with this change and {held:.0%} without"
    if not association.is_shown:
        return f"{past}: chance explains that (q = {association.q_value:.2g})"
    return f"{past}: an association (q = {association.q_value:.2g}), not a cause"
