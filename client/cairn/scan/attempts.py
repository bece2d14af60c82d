"""Which attempt each checkpoint of one run belongs to, as far as names and times of files tell.

Steps alone cannot say it: a folder that a second attempt reuses holds the rest of the first attempt's steps beyond
its own. What tells, in this order: the number in a folder's name (`attempt_2`); steps that repeat, with the version
that Lightning adds to a taken name; and times of files, where they run backwards from one step to the next. Times are
believed only where they look like those of a training run: some seconds apart, with few breaks, and not in the order
of the names' text, which is how a tree is copied. What rests on times is said to.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

MOST_BREAKS = 4
LEAST_SECONDS_APART = 1.0


@dataclass(frozen=True)
class Saved:
    """A checkpoint as far as its attempt depends on it. `hint`: the number that a folder above gives."""

    step: int
    name: str
    modified_at: float | None = None
    version: int = 0
    hint: int | None = None


@dataclass(frozen=True)
class Split:
    """The attempt of each, 1 for the first; `reason` says what tells, '' where there is one attempt only."""

    numbers: tuple[int, ...]
    reason: str = ""


def split_attempts(saved: Sequence[Saved], *, by_time: bool = True) -> Split:
    """The attempts of the checkpoints of one run. `by_time` False leaves the times of files aside."""
    hints = sorted({each.hint for each in saved if each.hint is not None})
    if not hints:
        return _split_one(saved, by_time)
    numbers = [0] * len(saved)
    taken, reasons = 0, ["folders are named after attempts"]
    for hint in [None, *hints]:
        places = [place for place, each in enumerate(saved) if each.hint == hint]
        if not places:
            continue
        split = _split_one([saved[place] for place in places], by_time)
        # The number in the name, where it is free: `attempt_3` stays 3 although 1 and 2 are gone.
        first = taken if hint is None or hint <= taken or hints[0] == 0 else hint - 1
        for place, number in zip(places, split.numbers, strict=True):
            numbers[place] = first + number
        taken = max(numbers[place] for place in places)
        if split.reason:
            reasons.append(split.reason)
    return Split(tuple(numbers), "; ".join(dict.fromkeys(reasons)))


def _split_one(saved: Sequence[Saved], by_time: bool) -> Split:
    """The attempts within one folder."""
    if by_time and _times_tell(saved):
        return _by_time(saved)
    if len({each.step for each in saved}) == len(saved):
        return Split((1,) * len(saved))
    return _by_repeats(saved)


def _by_time(saved: Sequence[Saved]) -> Split:
    """In the order in which they were written, each step back begins an attempt."""
    numbers = [1] * len(saved)
    number, last = 1, -1
    breaks = []
    for place in _in_time(saved):
        step = saved[place].step
        if step <= last:
            number += 1
            breaks.append(f"step {step} was written after step {last}")
        numbers[place], last = number, step
    return Split(tuple(numbers), f"by the times of files: {'; '.join(breaks)}" if breaks else "")


def _by_repeats(saved: Sequence[Saved]) -> Split:
    """The first at each step belongs to the first attempt, the second to the second."""
    order = sorted(range(len(saved)), key=lambda place: (saved[place].step, saved[place].version, saved[place].name))
    numbers = [1] * len(saved)
    seen: dict[int, int] = {}
    for place in order:
        seen[saved[place].step] = seen.get(saved[place].step, 0) + 1
        numbers[place] = seen[saved[place].step]
    repeated = sum(count > 1 for count in seen.values())
    return Split(tuple(numbers), f"{repeated} {'step repeats' if repeated == 1 else 'steps repeat'}")


def _times_tell(saved: Sequence[Saved]) -> bool:
    """Whether the times of files are those of the saves."""
    if len(saved) < 2 or any(each.modified_at is None for each in saved):
        return False
    order = _in_time(saved)
    times = [saved[place].modified_at or 0.0 for place in order]
    if median(later - earlier for earlier, later in itertools.pairwise(times)) < LEAST_SECONDS_APART:
        return False
    steps = [saved[place].step for place in order]
    breaks = sum(later <= earlier for earlier, later in itertools.pairwise(steps))
    if breaks > min(MOST_BREAKS, max(1, len(saved) // 3)):
        return False
    if breaks and order == sorted(order, key=lambda place: saved[place].name):
        return False
    return _versions_agree([saved[place] for place in order])


def _versions_agree(in_time: Sequence[Saved]) -> bool:
    """A name with a higher version was given later."""
    newest: dict[int, int] = {}
    for each in in_time:
        if each.version < newest.get(each.step, 0):
            return False
        newest[each.step] = each.version
    return True


def _in_time(saved: Sequence[Saved]) -> list[int]:
    return sorted(range(len(saved)), key=lambda place: (saved[place].modified_at or 0.0, saved[place].step))
