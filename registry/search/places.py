"""Reading where a checkpoint stands: steps, tokens, project, run and size of the model."""

import re
from typing import Final

from registry.search.clauses import is_word
from registry.search.conditions import FieldCondition
from registry.search.draft import Draft, Known
from registry.search.numbers import QUANTITY, SIZE, read_quantity
from registry.search.vocabulary import FILLERS

# '7B' names models of 6.7 to 7.6 billion parameters. A size without a comparison is read as within this share.
SIZE_TOLERANCE: Final = 0.15

_UNIT = r"(?P<unit>(?:training\s+)?steps?\b|步|tokens?\b|个?词元)"
_POINT = (
    rf"(?:第\s*)?(?:\bsteps?\s*(?P<step>{QUANTITY})(?!\s*(?:tokens?\b|%))|(?P<count>{QUANTITY})\s*(?:个\s*)?{_UNIT})"
)
_LOW, _HIGH, _TO = rf"(?P<low>{QUANTITY})", rf"(?P<high>{QUANTITY})", r"\s*(?:\band\b|\bto\b|到|至|~|-)\s*"
_RANGES: Final = (
    re.compile(rf"(?:\b(?:between|from)\s+)?\bsteps?\s+{_LOW}{_TO}(?:steps?\s+)?{_HIGH}(?!\s*%)"),
    re.compile(
        rf"(?:\b(?:between|from)\s+|从|在)?(?:第\s*)?{_LOW}\s*(?:步|steps?\b)?{_TO}(?:第\s*)?{_HIGH}"
        r"\s*(?:步|steps?\b)\s*(?:之间)?"
    ),
)
# The order matters: a longer form first, the bare one last.
_POINTS: Final = (
    ("<=", re.compile(rf"\b(?:up to|until|no later than|by)\s+(?:the\s+)?{_POINT}")),
    ("<=", re.compile(rf"(?:\b(?:within\s+)?(?:the\s+)?first\s+|前\s*){_POINT}")),
    ("<=", re.compile(rf"{_POINT}\s*(?:以内|之内|为止)")),
    ("<", re.compile(rf"\b(?:before|prior to|earlier than)\s+(?:the\s+)?{_POINT}")),
    ("<", re.compile(rf"{_POINT}\s*(?:之前|以前|前)")),
    (">=", re.compile(rf"(?:\b(?:since|from|starting at)\s+|从\s*|自\s*){_POINT}(?:\s*(?:onwards?\b|开始|起))?")),
    (">", re.compile(rf"\b(?:after|past|later than)\s+(?:the\s+)?{_POINT}")),
    (">", re.compile(rf"{_POINT}\s*(?:之后|以后|往后|后)")),
    (">=", re.compile(rf"{_POINT}\s*(?:开始|起)")),
    ("=", re.compile(rf"(?:\b(?:at|on)\s+|在\s*)?{_POINT}(?:\s*(?:时|处))?")),
)
_QUOTED_RUN = re.compile(
    r"(?P<word>\bruns?(?:\.name)?\b|运行|实验)?\s*(?:named|called|名为|叫|=|:)?\s*[\"'](?P<name>[^\"']{1,256})[\"']"
)
_RUN = re.compile(
    r"(?:\b(?:in|of|from|within|for)\s+)?(?:\b(?:the\s+)?runs?(?:\.name)?\b|运行|实验)\s*"
    r"(?P<said>named\s|called\s|名为|叫|=|:)?\s*(?P<name>[a-z0-9][a-z0-9_.=+,/\-]*)"
)
_PROJECT = re.compile(
    r"(?:\b(?:in|of|from|within|for)\s+|在\s*)?(?:\b(?:the\s+)?projects?\b|项目)\s*(?:named\s|called\s|名为|叫|=|:)?\s*"
    r"[\"']?(?P<name>[a-z0-9._-]{1,128})[\"']?(?:\s*(?:中|里))?"
)
_NAMED_PROJECT = re.compile(r"\b(?:in|within)\s+(?:the\s+)?(?P<name>[a-z0-9._-]{1,128})(?P<word>\s+project\b)?")
_SIZE = re.compile(
    rf"(?<![a-z0-9_.\-])(?P<size>{SIZE})(?:\s*-?\s*(?:models?\b|params?\b|parameters?\b|class\b|级别?|参数量?|规模|左右|大小|的?模型))?"
)
_WORD = re.compile(r"[a-z0-9][a-z0-9_.=+,/\-]*")


def take_steps(draft: Draft) -> None:
    """Take steps and token counts: 'before step 50000', 'after 100B tokens', 第5万步之前, 1000 到 2000 步."""
    for pattern in _RANGES:
        for match in draft.matches(pattern):
            low, high = sorted(read_quantity(match[name]) for name in ("low", "high"))
            draft.take(*match.span(), FieldCondition("step", ">=", low), FieldCondition("step", "<=", high))
    for relation, pattern in _POINTS:
        for match in draft.matches(pattern):
            field = "tokens_seen" if re.search("token|词元", match["unit"] or "") else "step"
            if field == "step" or relation != "=":
                draft.take(
                    *match.span(), FieldCondition(field, relation, read_quantity(match["step"] or match["count"]))
                )


def take_projects(draft: Draft, known: Known | None) -> None:
    """Take the names of projects that exist: 'in project pythia', 'in pythia', 项目 pythia."""
    if known is None:
        return
    for match in draft.matches(_PROJECT):
        _take_project(draft, match, known.project(_name(draft, match)))
    for match in draft.matches(_NAMED_PROJECT):
        if match["word"] or not is_word(match["name"]):
            _take_project(draft, match, known.project(_name(draft, match)))


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
        size = read_quantity(match["size"])
        ends = round(size * (1 - SIZE_TOLERANCE)), round(size * (1 + SIZE_TOLERANCE))
        pair = [FieldCondition("run.parameter_count", *end) for end in zip((">=", "<="), ends, strict=True)]
        draft.take(*match.span(), *pair)
