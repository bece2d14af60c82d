"""Reading `mmlu >= 60%`, `loss below 2`, `at least 0.5 on gsm8k`, `mmlu 不低于 60%`, `100B tokens 以上`."""

import math
import re
from dataclasses import replace
from typing import Final

from registry.evals.scales import can_hold
from registry.search.conditions import BenchmarkCondition, FieldCondition, span_of
from registry.search.draft import OPPOSITE, Draft, Known, UnreadableQuery
from registry.search.numbers import QUANTITY, SIZE, read_quantity
from registry.search.patterns import pattern_of
from registry.search.subjects import NAME_AFTER, Named, Subject, longest_name, subject_before, subject_of
from registry.types import Direction

# Longer ones first: 大于等于 before 大于. '+' and '-' mean better and worse, whichever way the benchmark points.
_SPELLINGS: Final = (
    ("!=", "!= | <> | ≠ | not equal to | 不等于"),
    (">=", ">= | ≥ | => | at least | no less than | not less than | no lower than | not lower than | not below"),
    (">=", "reaches | reached | reach | reaching | hits | hit | 达到 | 达到了"),
    (">=", "no fewer than | no worse than | 大于等于 | 不低于 | 不小于 | 不少于 | 至少 | 起码 | 大于或等于"),
    ("<=", "<= | ≤ | =< | at most | no more than | not more than | no higher than | not higher than | not above"),
    (">=", "greater than or equal to | more than or equal to | higher than or equal to | larger than or equal to"),
    ("<=", "less than or equal to | lower than or equal to | smaller than or equal to | fewer than or equal to"),
    ("<=", "up to | not over | 小于等于 | 不高于 | 不超过 | 不大于 | 不多于 | 至多 | 最多 | 小于或等于"),
    ("+", "beats | beat | beating | better than | 优于 | 好于 | 胜过"),
    ("-", "worse than | 差于 | 不如"),
    (">", "> | above | over | more than | greater than | higher than | larger than | bigger than | beyond"),
    (">", "exceeding | exceeds | exceed | 大于 | 高于 | 超过 | 多于 | 超出 | 突破 | 过了 | 过"),
    ("<", "< | below | under | less than | lower than | smaller than | fewer than | 小于 | 低于 | 少于 | 不足 | 不到"),
    ("=", "== | = | equal to | equals | exactly | 等于 | 恰好 | 恰为"),
)
_AFTER: Final = (
    (">=", "及以上 | 或以上 | 以上 | 或更高 | or more | or higher | or better | or above | and above | and up"),
    ("<=", "及以下 | 或以下 | 以下 | 或更低 | or less | or lower | or below | and below"),
)


def _table(spellings: tuple[tuple[str, str], ...]) -> dict[str, str]:
    return {word.strip(): operator for operator, words in spellings for word in words.split(" | ")}


def _any_of(words: dict[str, str]) -> str:
    longest = sorted(words, key=len, reverse=True)
    return "|".join(
        rf"\b{re.escape(word)}\b" if word[0].isalpha() and word.isascii() else re.escape(word) for word in longest
    )


_OPERATORS, _POSTFIXES = _table(_SPELLINGS), _table(_AFTER)
_NUMBER = rf"(?P<number>{SIZE}|{QUANTITY})\s*(?P<percent>%|per\s?cent\b|个百分点)?"
_NOT = (
    r"(?P<not>(?:\b(?:(?:is|are|does|do)\s+)?not|\b(?:isn't|aren't|doesn't|don't|never))\s+|"
    r"并不|不要?|不能|没有?|未|(?<![特分类级])别)"
)
_COMPARISON = pattern_of(rf"{_NOT}?(?P<operator>{_any_of(_OPERATORS)})\s*(?:the\s+)?{_NUMBER}")
_POSTFIX = pattern_of(
    rf"(?<![a-z0-9_.]){_NUMBER}\s*(?P<unit>steps?\b|步|tokens?\b|params?\b|parameters?\b|参数)?\s*(?P<operator>{_any_of(_POSTFIXES)})"
)
_BETWEEN = pattern_of(
    rf"(?:(?P<opening>between|介于|在)|from)?\s*(?P<low>{QUANTITY})\s*(?P<low_percent>%)?\s*"
    rf"(?:(?P<and>and|和|与)|to|到|至|~|-|–)\s*(?P<high>{QUANTITY})\s*(?P<high_percent>%)?\s*(?P<tail>之间)?"
)
_AND_THEN = pattern_of(r"\s*,?\s*(?:\b(?:but|and|yet)\b|但是?|且|并且|而且?|同时|又)?\s*(?:\b(?:is|also)\s+|也)?")
_BOTH = pattern_of(r"\b(?:both|all)\b|[都均]")
_AND_BEFORE = pattern_of(r"\s*(?:,|、|&|\band\b|以?及|[和与跟])\s*$")
_OPENING = pattern_of(r"(?:\b(?:between|from|with)\s+|[从在]\s*)?$")
_SIGN = r"(?P<operator><=|>=|=<|=>|<|>|≤|≥)"
_REVERSED = pattern_of(
    rf"(?<![a-z0-9_.,%]){_NUMBER}\s*{_SIGN}\s*(?P<name>[a-z][a-z0-9_+.\-@]*(?: [a-z0-9_+.\-@]+){{0,3}})"
)
_SECOND = pattern_of(rf"\s*{_SIGN}\s*{_NUMBER}")
_ONLY_PERCENT: Final = ("过", "过了")
_MIRRORED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def take_comparisons(draft: Draft, known: Known | None) -> None:
    """Take every comparison with a number out of the draft. Raises UnreadableQuery for a number off the scale."""
    for match in draft.matches(_REVERSED):
        _take_reversed(draft, match, known)
    for match in draft.matches(_BETWEEN):
        _take_between(draft, match, known)
    last: tuple[int, Named] | None = None
    for match in draft.matches(_COMPARISON):
        last = _take(draft, match, known, last) or last
    for match in draft.matches(_POSTFIX):
        _take(draft, match, known, None)


def _take(
    draft: Draft, match: re.Match[str], known: Known | None, last: tuple[int, Named] | None
) -> tuple[int, Named] | None:
    """Take one comparison; returns where it ended and what it spoke of, which the next one may mean as well."""
    start, end, found = subject_of(draft.low, match, match.end(), known)
    if found is None and last is not None and _AND_THEN.fullmatch(draft.low, last[0], match.start()):
        found = last[1]  # 'gsm8k above 5% but below 10%'
    if found is None:
        return None
    gap = draft.low[start + len(found[0]) : match.start()]
    others = _named_with(draft.low, start, known) if _BOTH.search(gap) else []
    if match["operator"] in _ONLY_PERCENT and not match["percent"]:
        return None  # 训练过 5 万步 is no comparison
    operator = _OPERATORS.get(match["operator"]) or _POSTFIXES[match["operator"]]
    for begin, stop, named in (*others, (start, end, found)):
        value = _on_scale(*named, read_quantity(match["number"]), bool(match["percent"]))
        condition = _condition(*named, operator, value)
        if match.groupdict().get("not"):
            condition = replace(condition, relation=OPPOSITE[condition.relation])
        draft.take(begin, stop, condition)
    return end, found


def _named_with(low: str, end: int, known: Known | None) -> list[tuple[int, int, Named]]:
    """What is listed before a subject, where 'both' is said: 'mmlu and gsm8k both above 30%'."""
    found: list[tuple[int, int, Named]] = []
    while joint := _AND_BEFORE.search(low, max(0, end - 20), end):
        before = subject_before(low, joint.start(), known)
        if before is None:
            break
        start, written, subject = before
        found.append((start, end, (written, subject)))
        end = start
    return found


def _take_reversed(draft: Draft, match: re.Match[str], known: Known | None) -> None:
    """`0.6 < mmlu` and `60% <= mmlu <= 70%`."""
    found = longest_name(match["name"], known, from_start=True)
    if found is None:
        return
    end = match.start("name") + len(found[0])
    bounds = [(_MIRRORED[_OPERATORS[match["operator"]]], match)]
    if second := _SECOND.match(draft.low, end):
        bounds.append((_OPERATORS[second["operator"]], second))
        end = second.end()
    percent = any(bound["percent"] for _, bound in bounds)
    pairs = [(operator, _on_scale(*found, read_quantity(bound["number"]), percent)) for operator, bound in bounds]
    draft.take(match.start(), end, *(_condition(*found, *pair) for pair in pairs))


def _take_between(draft: Draft, match: re.Match[str], known: Known | None) -> None:
    if match["and"] and not (match["opening"] or match["tail"]):
        return  # 'mmlu 40% and 60%' is no range
    found, end = subject_before(draft.low, match.start(), known), match.end()
    if found is None and (behind := NAME_AFTER.match(draft.low, end)):
        named = longest_name(behind[1], known, from_start=True)
        if named is not None:
            found, end = (match.start(), *named), behind.start(1) + len(named[0])
    if found is None:
        return
    start, written, subject = found
    if opening := _OPENING.search(draft.low, max(0, start - 12), start):
        start = opening.start()
    percent = bool(match["low_percent"] or match["high_percent"])
    ends = sorted(_on_scale(written, subject, read_quantity(match[name]), percent) for name in ("low", "high"))
    pair = [_condition(written, subject, operator, value) for operator, value in zip((">=", "<="), ends, strict=True)]
    draft.take(start, end, *pair)


def _on_scale(written: str, subject: Subject, value: float, percent: bool) -> float:
    """The number in the subject's own scale. A percent sign is read only where the table says what it means."""
    if isinstance(subject, str):
        if percent:
            raise UnreadableQuery(f"'{written}' is not measured in percent.")
        return value
    name, scale = subject.benchmark.name, subject.benchmark.scale
    if percent and scale not in ("fraction", "percent"):
        raise UnreadableQuery(f"{name} is not measured in percent: write the number in its own scale.")
    if scale == "fraction" and not percent and abs(value) > 1:
        what = f"{name} runs from 0 to 1, so it cannot be compared with {value:g}"
        raise UnreadableQuery(f"{what}: write {value:g}% or {value / 100:g}.")
    if scale in ("percent", "ten") and not percent and 0 < abs(value) < 1:
        whole = value * (100 if scale == "percent" else 10)
        what = f"{name} {span_of(scale)}, so {value:g} may be meant as {whole:g}"
        raise UnreadableQuery(f"{what}: write {whole:g}{f' or {value:g}%' if scale == 'percent' else ''}.")
    own = value / 100 if percent and scale == "fraction" else value
    if not can_hold(scale, own):
        raise UnreadableQuery(f"{name} {span_of(scale)}, so no score of it can be compared with {own:g}.")
    return own


def _condition(written: str, subject: Subject, operator: str, value: float) -> FieldCondition | BenchmarkCondition:
    if isinstance(subject, str):
        whole = subject in ("step", "tokens_seen", "run.parameter_count")
        if operator in "+-":
            operator = _better_field(written, subject, operator)
        return FieldCondition(subject, operator, math.floor(value) if whole and value == math.floor(value) else value)
    if operator in "+-":
        operator = ">" if (operator == "+") == (subject.benchmark.direction is not Direction.LOWER) else "<"
    return BenchmarkCondition(subject.benchmark.name, operator, float(value), subject.metric, subject.filter)


def _better_field(written: str, field: str, operator: str) -> str:
    """Which way 'better than' points: of the fields it says so of the loss only."""
    if field != "loss":
        raise UnreadableQuery(f"No {written} is better than another: say whether it should be above or below.")
    return "<" if operator == "+" else ">"
