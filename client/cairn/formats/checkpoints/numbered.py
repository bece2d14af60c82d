"""Names that count: which of a set should be there, given those that are."""

import re
from collections.abc import Sequence

MAX_COUNT = 100_000
_NUMBERED = re.compile(r"(.*[-_.](?:shard|rank)[-_]?)(0|[1-9]\d{0,5})(\.\w+)")


def siblings(paths: Sequence[str]) -> list[str]:
    """All names of sets that count from nought: `model-shard0.pt` and `model-shard2.pt` miss `model-shard1.pt`."""
    sets: dict[tuple[str, str], set[int]] = {}
    for path in paths:
        if found := _NUMBERED.fullmatch(path):
            sets.setdefault((found[1], found[3]), set()).add(int(found[2]))
    return [
        f"{stem}{number}{rest}"
        for (stem, rest), numbers in sets.items()
        if len(numbers) > 1 and max(numbers) < MAX_COUNT
        for number in range(max(numbers) + 1)
    ]
