"""Attempts of a run that is rebuilt from storage, opened in their order with what each says that it loaded."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# Numbers between attempts of which nothing is left; beyond, only the newest is opened.
MOST_GAPS = 1_000
REBUILT = "rebuilt by a scan; its cairn.json says what it loaded"
ASSUMED = "found by a scan; what it loaded is assumed from its first step"
NOTHING = "nothing of it was found by a scan; what it loaded is assumed from the attempt after it"


@dataclass(frozen=True)
class Began:
    """The first step that is left of an attempt, and what it said: `resumed_from`, `restart`, or nothing."""

    first_step: int
    said: Mapping[str, Any]

    def point(self) -> Mapping[str, Any] | None:
        """What it loaded of the same run."""
        found = self.said.get("resumed_from")
        return found if found is not None and "run" not in found else None

    def is_possible(self, number: int) -> bool:
        """Whether an attempt of this number can have begun so: from one before it."""
        point = self.point()
        return bool(self.said) and (point is None or (point.get("attempt") or 0) < number)


def to_open(found: Mapping[int, Began], newest: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """(number, body of POST attempts) of what is to be opened after the attempt `newest`, which is recorded.

    What lies between is opened too, since a number is only given after the one before it.
    """
    said = [number for number, each in found.items() if each.is_possible(number)]
    wanted = range(newest + 1, max(said, default=0) + 1)
    if len(wanted) - sum(number in found for number in wanted) > MOST_GAPS:
        return
    for number in wanted:
        yield number, _body(found, number)


def _body(found: Mapping[int, Began], number: int) -> dict[str, Any]:
    here = found.get(number)
    if here is not None and here.is_possible(number):
        return {**here.said, "reason": REBUILT}
    if number == 1:
        return {}
    if here is not None:
        return {"resumed_from": {"attempt": number - 1, "step": max(here.first_step - 1, 0)}, "reason": ASSUMED}
    later = (each for after, each in sorted(found.items()) if after > number)
    steps = (point["step"] for each in later if (point := each.point()) is not None)
    return {"resumed_from": {"attempt": number - 1, "step": next(steps, 0)}, "reason": NOTHING}
