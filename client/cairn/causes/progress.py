"""Lines by which a training job shows that it makes steps, and which step."""

import re
from dataclasses import dataclass, field
from typing import Final

_NUMBER: Final = r"(\d{1,3}(?:,\d{3})+|\d{1,18})"  # 2,400 too
_MEGATRON: Final = re.compile(rf"\biteration\s+{_NUMBER}\s*/\s*\d+")
_NAMED: Final = re.compile(
    rf"""\b(?:global[_ ]?step|train[_ /]?step|step|iter(?:ation)?)["']?\s*[:=#\[]?\s*{_NUMBER}\b""", re.IGNORECASE
)
# A step's own line also says what came of it; "step 2: download the data" does not.
_OUTCOME: Final = re.compile(
    r"loss|\blr\b|learning[_ ]rate|grad|tokens?\b|samples|it/s|s/it|mfu|tflop|ppl|perplexity", re.IGNORECASE
)
_BAR: Final = re.compile(r"\|\s*(\d+)/(\d+) \[\d+:\d+")
# Of bars only one that is called so counts steps: evaluations, batches of an epoch and downloads have bars as well.
_BAR_OF_STEPS: Final = re.compile(r"\bsteps?: +\d+%\|.*\|\s*(\d+)/\d+ \[\d+:\d+", re.IGNORECASE)
_EPOCH: Final = re.compile(r"""["']epoch["']: ?["']?(\d+(?:\.\d+)?)""")


def step_of(line: str) -> int | None:
    """The step that a line of a training log tells of; None where it tells of none."""
    lower = line.lower()
    if "step" not in lower and "iter" not in lower:
        return None  # ten times faster than to search it
    found = _MEGATRON.search(line) or (_NAMED.search(line) if _OUTCOME.search(line) else None)
    if found is None and "%|" in line:
        found = _BAR_OF_STEPS.search(line)
    return int(found[1].replace(",", "")) if found else None


@dataclass
class Rising:
    """Counts how far a job went on. Only what rises counts: many ranks tell of the same step, also of one that
    another rank did not live to end."""

    count: int = 0
    _last: dict[str, float] = field(default_factory=dict)

    def read(self, line: str) -> int:
        """The count with this line: one more if it tells of a later step, epoch or place of a bar than before."""
        for clock, value in _clocks(line):
            last = self._last.get(clock)
            if last is None or value > last:
                self._last[clock] = value
                self.count = max(self.count, 1) if last is None else self.count + 1
        return self.count


def _clocks(line: str) -> list[tuple[str, float]]:
    """What moves forward in a line, the first of: a step, a bar (by its end), the epoch that a trainer prints."""
    step = step_of(line)
    if step is not None:
        return [("step", step)]
    bar = _BAR.search(line)
    if bar is not None:
        return [(f"bar of {bar[2]}", int(bar[1]))]
    epoch = _EPOCH.search(line) if "epoch" in line else None
    return [("epoch", float(epoch[1]))] if epoch is not None else []
