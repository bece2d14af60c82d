"""Lines by which a training job shows that it makes steps, and which step."""

import re
from typing import Final

_MEGATRON: Final = re.compile(r"\biteration\s+(\d{1,18})\s*/\s*\d+")
_NAMED: Final = re.compile(
    r"""\b(?:global[_ ]?step|train[_ /]?step|step|iter(?:ation)?)["']?\s*[:=#\[]?\s*(\d{1,18})\b""", re.IGNORECASE
)
# A step's own line also says what came of it; "step 2: download the data" does not.
_OUTCOME: Final = re.compile(
    r"loss|\blr\b|learning[_ ]rate|grad|tokens?\b|samples|it/s|s/it|mfu|tflop|ppl|perplexity", re.IGNORECASE
)
_BAR: Final = re.compile(r"\|\s*\d+/\d+ \[\d+:\d+")


def step_of(line: str) -> int | None:
    """The step that a line of a training log tells of; None where it tells of none."""
    found = _MEGATRON.search(line) or (_NAMED.search(line) if _OUTCOME.search(line) else None)
    return int(found[1]) if found else None


def is_progress(line: str) -> bool:
    """Whether the job was at work when it wrote this: a step's line, or a progress bar."""
    return step_of(line) is not None or _BAR.search(line) is not None
