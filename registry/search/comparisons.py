"""Reading `mmlu >= 60%`, `loss below 2`, `at least 0.5 on gsm8k`, `mmlu 不低于 60%`, `100B tokens 以上`."""

import math
import re
from dataclasses import dataclass, replace
from typing import Final

from registry.evals.catalogue import Benchmark, catalogue
from registry.search.conditions import BenchmarkCondition, Condition, FieldCondition
from registry.search.draft import Draft, Known, UnreadableQuery
from registry.search.numbers import QUANTITY, SIZE, read_quantity
from registry.search.vocabulary import FIELD_NAMES
from registry.types import Direction

# Longer ones first: 大于等于 before 大于. '+' and '-' mean better and worse, whichever way the benchmark points.
_SPELLINGS: Final = (
    ("!=", "!= | <> | ≠ | not equal to | 不等于"),
    (">=", ">= | ≥ | => | at least | no less than | not less than | no lower than | not lower than | not below"),
    (">=", "no fewer than | no worse than | 大于等于 | 不低于 | 不小于 | 不少于 | 至少 | 起码 | 大于或等于"),
    ("<=", "<= | ≤ | =< | at most | no more than | not more than | no higher than | not higher than | not above"),
    ("<=", "up to | not over | 小于等于 | 不高于 | 不超过 | 不大于 | 不多于 | 至多 | 最多 | 小于或等于"),
    ("+", "better than | 优于 | 好于 | 胜过"),
    ("-", "worse than | 差于 | 不如"),
    (">", "> | above | over | more than | greater than | higher than | larger than | bigger than | beyond"),
    (">", "exceeding | exceeds | exceed | 大于 | 高于 | 超过 | 多于 | 超出"),
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
_NUMBER = rf"(?P<number>{SIZE}|{QUANTITY})\s*(?P<percent>%|percent\b|个百分点)?"
_COMPARISON = re.compile(rf"(?P<operator>{_any_of(_OPERATORS)})\s*(?:the\s+)?{_NUMBER}")
_POSTFIX = re.compile(
    rf"(?<![a-z0-9_.]){_NUMBER}\s*(?P<unit>steps?\b|步|tokens?\b|params?\b|parameters?\b|参数)?\s*(?P<operator>{_any_of(_POSTFIXES)})"
)
_BETWEEN = re.compile(
    rf"(?:between|from|介于|在)?\s*(?P<low>{QUANTITY})\s*(?P<low_percent>%)?\s*(?:and|to|到|至|~|-|–|和)\s*"
    rf"(?P<high>{QUANTITY})\s*(?P<high_percent>%)?\s*(?P<tail>之间)?"
)
_OPENING = re.compile(r"(?:\b(?:between|from|with)\s+|[从在]\s*)?$")
_UNIT_WORD = re.compile(
    r"\s*(?P<unit>(?:training\s+)?steps?\b|步|tokens?\b|个?\s*词元|params?\b|parameters?\b|参数(?:量)?)"
)
_GAP = re.compile(
    r"(?:\s|\b(?:is|are|was|of|with|has|a|an|the|score|scores|scoring|scored|accuracy|value|in|at|be)\b|[的在是得:]|"
    r"得分|分数|成绩|准确率|正确率|精度|表现|数值)*$"
)
_NAME_BEFORE = re.compile(r"(?<![a-z0-9_])[a-z0-9_+.\-@^]+(?: [a-z0-9_+.\-@^]+){0,3}$")
_NAME_AFTER = re.compile(r"\s*(?:on|in|for|at)\s+(?:the\s+)?([a-z0-9_+.\-]+(?: [a-z0-9_+.\-]+){0,3})")


@dataclass(frozen=True, slots=True)
class Score:
    """A benchmark, read by a metric that the query names, or by the preferred one."""

    benchmark: Benchmark
    metric: str | None = None


Subject = Score | str  # a score, or the name of a field


def take_comparisons(draft: Draft, known: Known | None) -> None:
    """Take every comparison with a number out of the draft. Raises UnreadableQuery for a number off the scale."""
    for match in draft.matches(_BETWEEN):
        _take_between(draft, match, known)
    for match in draft.matches(_COMPARISON):
        _take(draft, match, _OPERATORS[match["operator"]], known, after=match.end())
    for match in draft.matches(_POSTFIX):
        _take(draft, match, _POSTFIXES[match["operator"]], known, after=match.end())


def _take(draft: Draft, match: re.Match[str], operator: str, known: Known | None, *, after: int) -> None:
    start, end, found = _subject_of(draft.low, match, after, known)
    if found is not None:
        written, subject = found
        value = _on_scale(written, subject, read_quantity(match["number"]), bool(match["percent"]))
        draft.take(start, end, _condition(written, subject, operator, value))


def _take_between(draft: Draft, match: re.Match[str], known: Known | None) -> None:
    found = _subject_before(draft.low, match.start(), known)
    if found is None:
        return
    start, written, subject = found
    if opening := _OPENING.search(draft.low, max(0, start - 12), start):
        start = opening.start()
    percent = bool(match["low_percent"] or match["high_percent"])
    ends = sorted(_on_scale(written, subject, read_quantity(match[name]), percent) for name in ("low", "high"))
    pair = [_condition(written, subject, operator, value) for operator, value in zip((">=", "<="), ends, strict=True)]
    draft.take(start, match.end(), *pair)


def _subject_of(
    low: str, match: re.Match[str], after: int, known: Known | None
) -> tuple[int, int, tuple[str, Subject] | None]:
    """What the number is compared with, and where the whole comparison stands."""
    groups = match.groupdict()
    unit = groups.get("unit")
    if unit is None and (word := _UNIT_WORD.match(low, after)):
        unit, after = word["unit"], word.end()
    if unit is not None:
        return match.start(), after, (unit, _unit_field(unit))
    sized = re.fullmatch(SIZE, match["number"]) is not None
    before = _subject_before(low, match.start(), known)
    if before and not (sized and isinstance(before[2], Score)):  # 'best gsm8k under 7B' speaks of the model
        start, written, subject = before
        return start, match.end(), (written, subject)
    if (behind := _NAME_AFTER.match(low, match.end())) and (found := _longest(behind[1], known, from_start=True)):
        written, subject = found
        return match.start(), behind.start(1) + len(written), (written, subject)
    if sized:
        return match.start(), match.end(), ("size", "run.parameter_count")
    return match.start(), match.end(), None


def _unit_field(unit: str) -> str:
    if "step" in unit or unit == "步":
        return "step"
    return "tokens_seen" if "token" in unit or "词元" in unit else "run.parameter_count"


def _subject_before(low: str, end: int, known: Known | None) -> tuple[int, str, Subject] | None:
    window = max(0, end - 120)
    gap = _GAP.search(low, window, end)
    end = gap.start() if gap else end
    if (name := _NAME_BEFORE.search(low, window, end)) and (found := _longest(name[0], known, from_start=False)):
        written, subject = found
        return end - len(written), written, subject
    for written in sorted(FIELD_NAMES, key=len, reverse=True):
        if not written.isascii() and low.endswith(written, 0, end):
            return end - len(written), written, FIELD_NAMES[written]
    return None


def _longest(phrase: str, known: Known | None, *, from_start: bool) -> tuple[str, Subject] | None:
    """The longest run of words, at one end of the phrase, that names a field or a benchmark."""
    words = phrase.split(" ")
    for count in range(len(words), 0, -1):
        written = " ".join(words[:count] if from_start else words[-count:])
        if field := FIELD_NAMES.get(written):
            return written, field
        name = written.removeprefix("scores.")
        if known is not None and known.is_benchmark(name):
            return written, Score(replace(catalogue().for_metric(name, ""), name=name))
        if catalogue().capability(name):
            what = f"'{written}' is a capability, which has no scores of its own"
            raise UnreadableQuery(f"{what}: say 'strong {written}', or compare one of its benchmarks.")
        if benchmark := catalogue().get(name):
            return written, Score(benchmark)
        if score := _with_metric(name):
            return written, score
    return None


def _with_metric(written: str) -> Score | None:
    """`humaneval pass@1`, `arc_easy.acc`: a benchmark of the table with one of its metrics after it."""
    match = re.fullmatch(r"(?P<name>.+)[ .](?P<metric>[^ .]+)", written)
    if match is None or catalogue().get(match["name"]) is None:
        return None
    name, metric = match["name"], match["metric"]
    row = catalogue().for_metric(name, metric)
    return Score(row, metric) if metric in {listed for listed, _ in row.metrics} else None


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
    return value / 100 if percent and scale == "fraction" else value


def _condition(written: str, subject: Subject, operator: str, value: float) -> Condition:
    if isinstance(subject, str):
        whole = subject in ("step", "tokens_seen", "run.parameter_count")
        plain = {"+": ">", "-": "<"}.get(operator, operator)
        return FieldCondition(subject, plain, math.floor(value) if whole and value == math.floor(value) else value)
    if operator in "+-":
        operator = ">" if (operator == "+") == (subject.benchmark.direction is not Direction.LOWER) else "<"
    return BenchmarkCondition(subject.benchmark.name, operator, float(value), subject.metric)
