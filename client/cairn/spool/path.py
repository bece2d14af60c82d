"""The path of an attempt: what it did itself, and before that what the attempts did from which it went on."""

from collections.abc import Iterator, Sequence

from cairn.types import Attempt


def numbers_on_path(attempts: Sequence[Attempt], number: int, step: int, run: str) -> Iterator[int]:
    """The attempts of the run on whose part of this attempt's path a step may lie, the nearest first."""
    known = {each.number: each for each in attempts}
    while number in known:
        yield number
        loaded = known.pop(number).raw.get("resumed_from") or {}
        if loaded.get("run") not in (None, run) or (loaded.get("step") or 0) < step:
            return
        number = loaded.get("attempt") or 0
