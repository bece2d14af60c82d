"""Reading where a checkpoint stands: steps, tokens, project, run and size of the model."""

import re
from typing import Final

from registry.search.conditions import FieldCondition
from registry.search.draft import Draft, Known, UnreadableQuery
from registry.search.numbers import QUANTITY, SIZE, read_quantity
from registry.search.patterns import pattern_of
from registry.search.vocabulary import FILLERS
from registry.search.words import is_word

# '7B' names models of 6.7 to 7.6 billion parameters. A size without a comparison is read as within this share.
SIZE_TOLERANCE: Final = 0.15

_UNIT = r"(?P<unit>(?:training\s+)?steps?\b|步|tokens?\b|个?词元)"
_POINT = (
    rf"(?:第\s*)?(?:\bsteps?\s*(?P<step>{QUANTITY})(?!\s*(?:tokens?\b|%))|(?P<count>{QUANTITY})\s*(?:个\s*)?{_UNIT})"
)
_LOW, _HIGH = rf"(?P<low>{QUANTITY})", rf"(?P<high>{QUANTITY})"
_TO, _AND = r"\s*(?:\bto\b|到|至|~|-)\s*", r"\s*(?:\band\b|\bto\b|[和与]|到|至|~|-)\s*"
_RANGES: Final = (
    pattern_of(rf"\bbetween\s+(?:the\s+)?steps?\s+{_LOW}{_AND}(?:steps?\s+)?{_HIGH}(?!\s*%)"),
    pattern_of(rf"(?:\bfrom\s+)?\bsteps?\s+(?:from\s+|between\s+)?{_LOW}{_TO}(?:steps?\s+)?{_HIGH}(?!\s*%)"),
    pattern_of(rf"\bsteps?\s+(?:are\s+|is\s+)?between\s+{_LOW}{_AND}{_HIGH}(?!\s*%)"),
    pattern_of(rf"\bbetween\s+{_LOW}\s*(?:steps?\b)?{_AND}{_HIGH}\s*steps?\b"),
    pattern_of(rf"(?:从|在)?(?:第\s*)?{_LOW}\s*步?{_AND}(?:第\s*)?{_HIGH}\s*步\s*之间"),
    pattern_of(rf"(?:\bfrom\s+|从|在)?(?:第\s*)?{_LOW}\s*(?:步|steps?\b)?{_TO}(?:第\s*)?{_HIGH}\s*(?:步|steps?\b)"),
)
# 'Every 1000 steps' and 'the last 5000 steps' are no step, and three steps are no one step.
_NO_POINT = pattern_of(
    r"(?:\b(?:every|each|last|final|per|another|other|next|previous|remaining|around|about|near|nearly|roughly|approximately|almost|close\s+to)\s+(?:the\s+)?|大?约|大概|接近|每隔?|最后的?|倒数|后|最近|近)\s*$"
)
_NO_END = pattern_of(
    rf"\s*(?:\b(?:ago|later|apart|earlier|each|divisible)\b|一次|一存|一个|一保存|左右|附近|上下|(?:,|、|/|和|与|或|\band\b|\bor\b)\s*"
    rf"(?!{SIZE}(?!\s*(?:steps?|步))){QUANTITY}(?!\s*[%.]))"
)
# A count of tokens without a comparison is read as within this share: a checkpoint is seldom saved at just that one.
TOKENS_TOLERANCE: Final = 0.05
# The order matters: a longer form first, the bare one last.
_POINTS: Final = (
    ("<=", pattern_of(rf"\b(?:up to|until|no later than|by)\s+(?:the\s+)?{_POINT}")),
    ("<=", pattern_of(rf"(?:\b(?:within\s+)?(?:the\s+)?first\s+|前\s*){_POINT}")),
    ("<=", pattern_of(rf"{_POINT}\s*(?:以内|之内|为止)")),
    ("<", pattern_of(rf"\b(?:before|prior to|earlier than)\s+(?:the\s+)?{_POINT}")),
    ("<", pattern_of(rf"{_POINT}\s*(?:之前|以前|前)")),
    (">=", pattern_of(rf"(?:\b(?:since|from|starting at)\s+|从\s*|自\s*){_POINT}(?:\s*(?:onwards?\b|开始|起))?")),
    (">", pattern_of(rf"\b(?:after|past|later than)\s+(?:the\s+)?{_POINT}")),
    (">", pattern_of(rf"{_POINT}\s*(?:之后|以后|往后|后)")),
    (">=", pattern_of(rf"{_POINT}\s*(?:开始|起|\+|,?\s*(?:or|and)\s+(?:later|after|up|above|more)\b|onwards?\b)")),
    (">=", pattern_of(rf"(?P<step>(?P<count>{QUANTITY}))\s?\+\s*{_UNIT}")),
    ("=", pattern_of(rf"(?:\b(?:at|on)\s+|在\s*)?{_POINT}(?:\s*(?:时|处))?")),
)
_QUOTED_RUN = pattern_of(
    r"(?P<word>\bruns?(?:\.name)?\b|运行|实验)?\s*(?:named|called|名为|叫|=|:)?\s*[\"'](?P<name>[^\"']{1,256})[\"']"
)
_RUN = pattern_of(
    r"(?:\b(?:in|of|from|within|for)\s+)?(?:\b(?:the\s+)?runs?(?:\.name)?\b|运行|实验)\s*"
    r"(?P<said>named\s|called\s|名为|叫|=|:)?\s*(?P<name>[a-z0-9][a-z0-9_.=+,/\-]*)"
)
_PROJECT = pattern_of(
    r"(?:\b(?:in|of|from|within|for)\s+|在\s*)?(?:\b(?:the\s+)?projects?\b|项目)\s*(?:named\s|called\s|名为|叫|=|:)?\s*"
    r"[\"']?(?P<name>[a-z0-9._-]{1,128})[\"']?(?:\s*(?:中|里))?"
)
_NAMED_PROJECT = pattern_of(r"\b(?:in|within)\s+(?:the\s+)?(?P<name>[a-z0-9._-]{1,128})(?P<word>\s+project\b)?")
_SIZE = pattern_of(
    rf"(?<![a-z0-9_.\-])(?P<size>{SIZE})(?:\s*-?\s*(?:models?\b|params?\b|parameters?\b|class\b|级别?|参数量?|规模|左右|大小|的?模型))?"
)
_OF_MODELS: Final = (
    r"(?:\s*-?\s*(?:models?\b|params?\b|parameters?\b|参数量?|规模|的?模型|之间))*(?!\s*(?:steps?\b|tokens?\b|步|词元))"
)
_SIZE_RANGES: Final = tuple(
    pattern_of(rf"{opening}(?<![a-z0-9_.\-])(?P<low>{SIZE}){joint}(?P<high>{SIZE}){_OF_MODELS}")
    for opening, joint in ((r"(?:\bbetween\s+|介于\s*|在\s*)", _AND), (r"(?:\bfrom\s+|从\s*)?", _TO))
)
_WORD = pattern_of(r"[a-z0-9][a-z0-9_.=+,/\-]*")
LEAST_LETTERS: Final = 4  # of a project that no word introduces


def take_steps(draft: Draft) -> None:
    """Take steps and token counts: 'before step 50000', 'after 100B tokens', 第5万步之前, 1000 到 2000 步."""
    for pattern in _RANGES:
        for match in draft.matches(pattern):
            low, high = sorted(read_quantity(match[name]) for name in ("low", "high"))
            draft.take(*match.span(), FieldCondition("step", ">=", low), FieldCondition("step", "<=", high))
    for relation, pattern in _POINTS:
        for match in draft.matches(pattern):
            _refuse_no_point(draft, match)
            number = read_quantity(match["step"] or match["count"])
            if not re.search("token|词元", match["unit"] or ""):
                draft.take(*match.span(), FieldCondition("step", relation, number))
            elif relation == "=":
                draft.take(*match.span(), *_around("tokens_seen", number, TOKENS_TOLERANCE))
            else:
                draft.take(*match.span(), FieldCondition("tokens_seen", relation, number))


def _refuse_no_point(draft: Draft, match: re.Match[str]) -> None:
    before = _NO_POINT.search(draft.low, 0, match.start())
    after = _NO_END.match(draft.low, match.end())
    if before or after:
        start, end = before.start() if before else match.start(), after.end() if after else match.end()
        what = f"'{draft.text[start:end].strip()}' is not one place in a run"
        raise UnreadableQuery(f"{what}: say 'after step 90000', 'between step 1000 and 2000', or ask for one step.")


def _around(field: str, number: float, share: float) -> list[FieldCondition]:
    ends = round(number * (1 - share)), round(number * (1 + share))
    return [FieldCondition(field, relation, end) for relation, end in zip((">=", "<="), ends, strict=True)]


def take_projects(draft: Draft, known: Known | None) -> None:
    """Take the names of projects that exist: 'in project pythia', 'in pythia', 项目 pythia."""
    if known is None:
        return
    for match in draft.matches(_PROJECT):
        name = _name(draft, match)
        _take_project(draft, match, known.project(name))
        if known.project(name) is None and not is_word(name.lower()):
            raise UnreadableQuery(f"There is no project '{name}' here. {known.nearest_project(name)}".rstrip())
    for match in draft.matches(_NAMED_PROJECT):
        if match["word"] or not is_word(match["name"]):
            _take_project(draft, match, known.project(_name(draft, match)))


def take_bare_projects(draft: Draft, known: Known | None) -> None:
    """Take what is left and is the whole name of a project: 'strong math dclm'. A short one may be any word."""
    for match in draft.matches(_WORD) if known is not None else ():
        name = draft.text[match.start() : match.end()].rstrip(".,")
        if not is_word(name.lower()) and (len(name) >= LEAST_LETTERS or _looks_like_a_name(name)):
            _take_project(draft, match, known.project(name) if known is not None else None)


def _take_project(draft: Draft, match: re.Match[str], name: str | None) -> None:
    if name is not None:
        draft.take(*match.span(), FieldCondition("project", "=", name))


def take_runs(draft: Draft, known: Known | None) -> None:
    """Take the names of runs: after the word run, in quotes, or any word that is the name of a run."""
    for match in draft.matches(_QUOTED_RUN):
        if match["word"] or (known and known.is_run(_name(draft, match))):
            draft.take(*match.span(), _run(draft, match))
    for match in draft.matches(_RUN):
        if match["said"] or _looks_like_a_name(match["name"]) or (known and known.is_run(_name(draft, match))):
            draft.take(*match.span(), _run(draft, match))
    if known is not None:
        for match in draft.matches(_WORD):
            if not is_word(match[0]) and known.is_run(draft.text[match.start() : match.end()]):
                draft.take(*match.span(), FieldCondition("run.name", "=", draft.text[match.start() : match.end()]))


def _looks_like_a_name(word: str) -> bool:
    return word not in FILLERS and any(letter.isdigit() or letter in "_-." for letter in word)


def _name(draft: Draft, match: re.Match[str]) -> str:
    return draft.text[match.start("name") : match.end("name")].rstrip(".,")


def _run(draft: Draft, match: re.Match[str]) -> FieldCondition:
    return FieldCondition("run.name", "=", _name(draft, match))


def take_sizes(draft: Draft) -> None:
    """Take the sizes of models: '7B' is a range of parameter counts around it."""
    for match in draft.matches(_SIZE):
        draft.take(*match.span(), *_around("run.parameter_count", read_quantity(match["size"]), SIZE_TOLERANCE))


def take_size_ranges(draft: Draft) -> None:
    """Take 'between 1B and 7B', '1B-7B models', 1B 到 7B. What may be a range of tokens is left alone."""
    for pattern in _SIZE_RANGES:
        for match in draft.matches(pattern):
            low, high = sorted(read_quantity(match[name]) for name in ("low", "high"))
            pair = (FieldCondition("run.parameter_count", ">=", low), FieldCondition("run.parameter_count", "<=", high))
            draft.take(*match.span(), *pair)
