"""How a benchmark that no capability claims could be mapped, with the reason. A proposal is never applied by itself."""

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from registry.evals.catalogue import Benchmark, catalogue, key_of
from registry.evals.normalise import bounds
from registry.evals.project_table import ProjectTable
from registry.evals.table.flags import MetricRange, may_be_two_scales

NEAR: Final = 0.75  # of difflib's ratio: below it names that share a few letters by chance are found
SHORTEST: Final = 4  # letters of a name that may be found inside another
_EDGES = re.compile(
    r"(?:v?\d+(?:shot)?|shot|test|val|valid|dev|cot|gen|ppl|en|zh|eval|custom|my|new|final)$|^(?:my|custom|new)"
)
_SHARED = re.compile(r"bench|eval")


@dataclass(frozen=True, slots=True)
class Proposal:
    """`same_as`: a benchmark of the table that it may be; None where no name is near. `scale`: what values allow."""

    same_as: str | None
    capability: str | None
    scale: str | None
    reason: str


def propose(name: str, ranges: Sequence[MetricRange], table: ProjectTable) -> Proposal | None:
    """A proposal from the name and the values; None where neither says anything."""
    values = [value for each in ranges for value in (each.low, each.high) if value is not None]
    low, high = (min(values), max(values)) if values else (None, None)
    nearest = _nearest(name)
    if nearest is not None:
        entry, why = nearest
        fits = _fits(entry, low, high)
        if low is None or high is None:
            fit = "it has no finite value yet"
        else:
            fit = f"values from {low:g} to {high:g} {'fit' if fits else 'do not fit'} its scale '{entry.scale}'"
        return Proposal(entry.name, entry.capability, entry.scale if fits else _scale(low, high), f"{why}; {fit}.")
    if low is None or high is None:
        return None
    scale = _scale(low, high)
    words = {"fraction": "a share from 0 to 1", "percent": "a share from 0 to 100", "ten": "a mark from 1 to 10"}
    mixed = may_be_two_scales(low, high)
    what = "shares in two scales" if mixed else words.get(scale or "", "no scale with a top")
    return Proposal(
        None, None, scale, f"No name of the table is near; values from {low:g} to {high:g} look like {what}."
    )


def _nearest(name: str) -> tuple[Benchmark, str] | None:
    """The benchmark of the table whose name or alias is most like this one, and how."""
    key = key_of(name)
    bare = _bare(key)
    known = _known()
    for wanted in (bare, *(each for each in known if len(each) >= SHORTEST and each in key)):
        if wanted in known:
            best = max((each for each in known if each in key), key=len, default=wanted)
            return known[best], f"The name holds '{best}', which is {known[best].name}"
    close = difflib.get_close_matches(key, known, n=1, cutoff=NEAR)
    if not close or difflib.SequenceMatcher(None, _own(key), _own(close[0])).ratio() < NEAR:
        return None
    ratio = difflib.SequenceMatcher(None, key, close[0]).ratio()
    entry = known[close[0]]
    return entry, f"The name is like '{entry.name}' ({ratio:.0%} of the letters)"


def _own(key: str) -> str:
    """Without the words that many names end in: 'new_bench' is no 'eq_bench'."""
    return _SHARED.sub("", key) or key


def _bare(key: str) -> str:
    while (shorter := _EDGES.sub("", key)) != key:
        key = shorter
    return key


@cache
def _known() -> dict[str, Benchmark]:
    """Name or alias, as names are compared, to the benchmark; parts of a benchmark are not proposed."""
    rows = [row for row in catalogue().benchmarks if row.part_of is None and row.capability is not None]
    names = [(key_of(name), row) for row in reversed(rows) for name in (*row.aliases, row.name) if "*" not in name]
    return {key: row for key, row in names if len(key) >= SHORTEST}


def _fits(entry: Benchmark, low: float | None, high: float | None) -> bool:
    if low is None or high is None or bounds(entry) is None:
        return True
    top = {"fraction": 1.0, "percent": 100.0, "ten": 10.0}[entry.scale]
    return low >= 0 and high <= top and not (top > 1 and may_be_two_scales(low, high))


def _scale(low: float | None, high: float | None) -> str | None:
    """The narrowest scale that holds the values; one that only a few low marks would hold as well is not named."""
    if low is None or high is None or low < 0:
        return None
    if high <= 1:
        return "fraction"
    if may_be_two_scales(low, high):
        return None
    return "ten" if low >= 1 and high <= 10 else ("percent" if 10 < high <= 100 else None)
