"""Words around what a rule found that make it no report of a fault: a count of nothing, a handler, advice, a retry.

They are looked for beside the found words only: the kernel ends its own report with 'oom_score_adj:0', PyTorch ends
its own with advice.
"""

import re
from typing import Final

_NOTHING: Final = r"(?:0(?![.\dx:-])|(?:false|none|no|off|disabled)\b)"
_BEFORE: Final = re.compile(
    r"(?:^|[:,;(|=]\s*)0 +$"  # "health check: 0 ..."; but not "rank 0 ..."
    r"|\b(?:no|without|zero|never|not) +(?:\w+ +)?$"
    r"|\b(?:if (?:you|there|it)|when you|to (?:avoid|prevent)|helps? (?:with|against)|(?:tip|hint) ?:)(?!\w)[^.]*$"
    r"|^\s*#\s|\b(?:ignor|skipp|recover|surviv)(?:ed|ing)\b[^.]*$",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    rf"^\w* ?(?:(?:errors?|counts?|counters?|events?|warnings?|faults?|hints?|budget|total|skipped|detected) ?)*"
    rf"\s*[:=] ?{_NOTHING}"
    r"|^\w* (?:errors? )?(?:counts?|counters?) 0\b"
    r"|^\W*(?:is |are |was )?(?:disabled|enabled|off|recovered|supported)\b"
    r"|^\w* (?:rates?|probability|polic(?:y|ies)|budget|hints?|tests?|checks?|threshold|protection)\b"
    r"|\bhandlers? (?:is |was )?(?:set|installed|registered|started|enabled|ready)\b|^ (?:handlers?|registered)\b"
    r"|\bretrying\b|\bretried\b|\bwill (?:be )?retr(?:y|ied)\b|\bretry \(?(?:\d|in |ok|attempt)|\(retry \d"
    r"|\bcaught\b ?(?:[,;.]|and\b|$)|\bwould (?:have|be)\b|\b(?:skipped|recovered|ignored)\W*$"
    r"|\b(?:reduc|halv|lower|decreas)ing (?:the )?(?:micro.?|per.device.)?batch|\bskipping\b",
    re.IGNORECASE,
)
_GAVE_UP: Final = re.compile(
    r"max(imum)? (number of )?retries|(retry|retries|attempts) (limit |count(er)? )?(exceeded|exhausted)|giving up"
    r"|no more retries|\bnot retrying|failed after",
    re.IGNORECASE,
)


def is_mention(line: str, start: int, end: int) -> bool:
    """Whether the words of `line` from `start` to `end` only mention a fault."""
    before, after = line[:start], line[end:]
    if _BEFORE.search(before) is None and _AFTER.search(after) is None:
        return False
    return _GAVE_UP.search(line) is None
