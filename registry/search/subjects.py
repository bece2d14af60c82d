"""What a number is compared with: the benchmark, the figure of it or the field that is named beside the number."""

import re
from dataclasses import dataclass, replace

from registry.evals.catalogue import Benchmark, catalogue
from registry.filters.score_names import NO_NAME
from registry.search.draft import Known, UnreadableQuery
from registry.search.field_words import FIELD_NAMES
from registry.search.numbers import SIZE
from registry.search.patterns import pattern_of
from registry.search.vocabulary import METRIC
from registry.search.words import perplexity_of

_UNIT_WORD = pattern_of(
    r"\s*(?P<unit>(?:training\s+)?steps?\b|步|tokens?\b|个?\s*词元|params?\b|parameters?\b|参数(?:量)?)"
)
_GAP = pattern_of(
    r"(?:\s|\b(?:is|are|was|of|with|has|a|an|the|score|scores|scoring|scored|accuracy|value|in|at|be|both|all)\b|"
    r"[的在是得都均:]|"
    r"得分|分数|成绩|准确率|正确率|精度|表现|数值)*$"
)
_NAME_BEFORE = pattern_of(r"(?<![a-z0-9_])[a-z0-9_+.\-@^]+(?: [a-z0-9_+.\-@^]+){0,3}$")
_CHINESE_METRIC = pattern_of(r"(?<![a-z0-9_])(?P<name>[a-z0-9_+.\-]+)\s*的?\s*困惑度\s*$")
_BRACKETS = pattern_of(r"(?<![a-z0-9_])(?P<name>[a-z0-9_+.\-@]+)\s*\(\s*(?P<metric>[a-z0-9_+.\-@]+)\s*\)$")
_WORD = pattern_of(r"[a-z0-9_][a-z0-9_@+\-]*")
_METRIC_OF = pattern_of(r"^(?P<metric>[^ ]+) (?:on|of|for) (?P<name>.+)$")
_FIGURE = pattern_of(rf"(?<![a-z0-9_])(?:{'|'.join(METRIC)})$")
NAME_AFTER = pattern_of(r"\s*(?:on|in|for|at|of)\s+(?:the\s+)?([a-z0-9_+.\-]+(?: [a-z0-9_+.\-]+){0,3})")


@dataclass(frozen=True, slots=True)
class Score:
    """A benchmark, read by a metric and a filter that the query names, or by the preferred ones."""

    benchmark: Benchmark
    metric: str | None = None
    filter: str | None = None


Subject = Score | str  # a score, or the name of a field
Named = tuple[str, Subject]  # as written, and what it is


def subject_of(low: str, match: re.Match[str], after: int, known: Known | None) -> tuple[int, int, Named | None]:
    """What the number is compared with, and where the whole comparison stands."""
    groups = match.groupdict()
    unit = groups.get("unit")
    if unit is None and (word := _UNIT_WORD.match(low, after)):
        unit, after = word["unit"], word.end()
    if unit is not None:
        return match.start(), after, (unit, _unit_field(unit))
    sized = re.fullmatch(SIZE, match["number"]) is not None
    before = subject_before(low, match.start(), known, sized=sized)
    if before:
        start, written, subject = before
        return start, match.end(), (written, subject)
    if figure := _figure_before(low, match):
        return figure
    if (behind := NAME_AFTER.match(low, match.end())) and (found := longest_name(behind[1], known, from_start=True)):
        written, subject = found
        return match.start(), behind.start(1) + len(written), (written, subject)
    if sized:
        return match.start(), match.end(), ("size", "run.parameter_count")
    return match.start(), match.end(), None


def _figure_before(low: str, match: re.Match[str]) -> tuple[int, int, Named] | None:
    """`perplexity below 10 on wikitext`: the figure stands before the number, and its benchmark after it."""
    gap = _GAP.search(low, max(0, match.start() - 120), match.start())
    word = _FIGURE.search(low, 0, gap.start() if gap else match.start())
    behind = NAME_AFTER.match(low, match.end())
    if word is None or behind is None:
        return None
    words = behind[1].split(" ")
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        if catalogue().get(name):
            end = behind.start(1) + len(name)
            return word.start(), end, (f"{name} {word[0]}", _perplexity(name, word[0]))
    return None


def _unit_field(unit: str) -> str:
    if "step" in unit or unit == "步":
        return "step"
    return "tokens_seen" if "token" in unit or "词元" in unit else "run.parameter_count"


def subject_before(low: str, end: int, known: Known | None, *, sized: bool = False) -> tuple[int, str, Subject] | None:
    """What is named before a number; of a size only a field: 'best gsm8k under 7B' speaks of the model."""
    window = max(0, end - 120)
    gap = _GAP.search(low, window, end)
    end = gap.start() if gap else end
    if sized:
        field = pattern_of(rf"(?<![a-z0-9_])(?:{'|'.join(map(re.escape, FIELD_NAMES))})$").search(low, window, end)
        return (field.start(), field[0], FIELD_NAMES[field[0]]) if field else None
    if (named := _CHINESE_METRIC.search(low, window, end)) and catalogue().get(named["name"]):
        return named.start(), named[0], _perplexity(named["name"], "perplexity")
    if (named := _BRACKETS.search(low, window, end)) and (
        score := score_named(f"{named['name'].removeprefix('scores.')} {named['metric']}", known)
    ):  # 'gsm8k (acc)'
        return named.start(), named[0], score
    if (name := _NAME_BEFORE.search(low, window, end)) and (found := longest_name(name[0], known, from_start=False)):
        written, subject = found
        return end - len(written), written, subject
    for written in sorted(FIELD_NAMES, key=len, reverse=True):
        if not written.isascii() and low.endswith(written, 0, end):
            return end - len(written), written, FIELD_NAMES[written]
    return None


def longest_name(phrase: str, known: Known | None, *, from_start: bool) -> tuple[str, Subject] | None:
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
        if score := score_named(_METRIC_OF.sub(r"\g<name> \g<metric>", name), known):
            return written, score
    return None


def score_named(written: str, known: Known | None) -> Score | None:
    """A benchmark with its metric and filter: `humaneval pass@1`, `gsm8k.acc`, `gsm8k.exact_match.strict-match`.

    After a space the metric is one that the table has for the benchmark, or some result; after a point, any.
    """
    for place in [match.start() for match in re.finditer("[ .]", written)]:
        name, joint, rest = written[:place], written[place], written[place + 1 :]
        if (known is not None and known.is_benchmark(name)) or catalogue().get(name) is not None:
            metric, _, filter = rest.partition(".")
            if score := _with_metric(name, metric, filter or None, known, said=joint == "."):
                return score
    return None


def _with_metric(name: str, metric: str, filter: str | None, known: Known | None, *, said: bool) -> Score | None:
    if metric in METRIC:
        return _perplexity(name, metric)
    spelled = _spelled(name, metric, known)
    if spelled is None and not (said and _WORD.fullmatch(metric)):
        return None
    metric = spelled if spelled is not None else metric
    empty = ["" if part == NO_NAME else part for part in (metric, filter or "")]
    row = catalogue().for_metric(name, *empty)
    own = replace(row, name=name) if known is not None and known.is_benchmark(name) else row
    return Score(own, empty[0], None if filter is None else empty[1])


def _spelled(name: str, metric: str, known: Known | None) -> str | None:
    """The metric as the table writes it for the benchmark, or as some result does."""
    listed = {pair[0].lower(): pair[0] for row in catalogue().rows_named(name) for pair in row.metrics}
    return listed.get(metric) or (known.metric(metric) if known is not None else None)


def _perplexity(name: str, word: str) -> Score:
    metric = perplexity_of(name, word)
    return Score(catalogue().for_metric(name, metric), metric)
