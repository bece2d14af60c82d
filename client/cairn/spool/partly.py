"""Sends a body of which the service refuses parts without those parts: one bad value never costs what is good."""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from cairn.errors import CairnError, Invalid, TooLarge
from cairn.spool.refused import passes

Record = dict[str, Any]
Place = tuple[str, ...]
Refuse = Callable[[Any, CairnError], None]
# Without these an item says nothing of a checkpoint, or something else.
ESSENTIAL = frozenset({"project", "run", "attempt", "step", "kind", "state", "saved_at"})


def named_places(fault: CairnError) -> list[Place]:
    """The places of a body that a refusal names, as keys and indexes."""
    pointers = (each.pointer for each in fault.errors if each.pointer.startswith("/"))
    return [tuple(part.replace("~1", "/").replace("~0", "~") for part in each[1:].split("/")) for each in pointers]


def without(item: Record, places: Iterable[Place], essential: Collection[str] = ESSENTIAL) -> tuple[Record, list[str]]:
    """The item without the fields at these places, or only without their member (a tag, a score); and what is left out.
    Nothing is, where the item would say nothing without it."""
    known = [place for place in places if place and place[0] in item]
    if any(place[0] in essential for place in known):
        return item, []
    left = dict(item)
    for field in {place[0] for place in known}:
        members = {place[1] if len(place) > 1 else "" for place in known if place[0] == field}
        rest = _without_members(left[field], members)
        if rest:
            left[field] = rest
        else:
            del left[field]
    return left, sorted({".".join(place[:2]) for place in known})


def _without_members(value: Any, members: set[str]) -> Any:
    if isinstance(value, dict) and members <= value.keys():
        return {name: each for name, each in value.items() if name not in members}
    if isinstance(value, list) and members <= {str(at) for at in range(len(value))}:
        return [each for at, each in enumerate(value) if str(at) not in members]
    return None


def send_items(items: Sequence[Any], send: Callable[[Sequence[Any]], object], refuse: Refuse) -> None:
    """Sends a list, without the items that a refusal names. Raises `CairnError` that passes, or that names none."""
    left = list(items)
    while left:
        try:
            send(left)
            return
        except CairnError as fault:
            bad = {int(place[0]) for place in named_places(fault) if place[0].isdigit() and int(place[0]) < len(left)}
            if passes(fault) or not bad:
                raise
            refuse([left[at] for at in sorted(bad)], fault)
            left = [each for at, each in enumerate(left) if at not in bad]


class Curves:
    """Stretches of curves on their way. What was refused once is not sent again: the last points before an end are."""

    def __init__(self) -> None:
        self._refused: set[tuple[Any, Any, Any]] = set()

    def send(self, curves: Sequence[Record], send: Callable[[Sequence[Record]], object], refuse: Refuse) -> None:
        """Without the points or the curves that are refused. Raises `CairnError` that passes."""
        left = [each for each in map(self._unrefused, curves) if each["steps"]] if self._refused else list(curves)
        while left:
            try:
                send(left)
                return
            except CairnError as fault:
                if passes(fault):
                    raise
                bad, rest = _apart(left, named_places(fault))
                if not bad and len(halves := _halves(left, fault)) > 1:
                    for half in halves:
                        self.send(half, send, refuse)
                    return
                bad, left = (bad, rest) if bad else (left, [])
                self._refused.update((each["attempt"], each["name"], step) for each in bad for step in each["steps"])
                refuse(bad, fault)

    def _unrefused(self, curve: Record) -> Record:
        at, name, steps = curve["attempt"], curve["name"], curve["steps"]
        return _points(curve, [place for place, step in enumerate(steps) if (at, name, step) not in self._refused])


def _apart(curves: Sequence[Record], places: Sequence[Place]) -> tuple[list[Record], list[Record]]:
    """What the places name, as curves of their own, and the rest."""
    bad, rest = [], []
    for at, curve in enumerate(curves):
        named = [place[1:] for place in places if place[0] == str(at)]
        points = {int(place[1]) for place in named if _is_point(place)}
        if not named:
            rest.append(curve)
        elif any(not _is_point(place) for place in named):
            bad.append(curve)
        else:
            everything = range(len(curve["steps"]))
            bad.append(_points(curve, [each for each in everything if each in points]))
            rest.append(_points(curve, [each for each in everything if each not in points]))
    return [each for each in bad if each["steps"]], [each for each in rest if each["steps"]]


def _is_point(place: Place) -> bool:
    return len(place) > 1 and place[0] in ("steps", "values") and place[1].isdigit()


def _points(curve: Record, chosen: Sequence[int]) -> Record:
    return {**curve, **{name: [curve[name][at] for at in chosen] for name in ("steps", "values")}}


def _halves(curves: list[Record], fault: CairnError) -> list[list[Record]]:
    """Two smaller bodies, where the refusal is one of the body and names no place in it."""
    if not isinstance(fault, (Invalid, TooLarge)):
        return []
    if len(curves) > 1:
        return [curves[: len(curves) // 2], curves[len(curves) // 2 :]]
    (curve,) = curves
    middle, count = len(curve["steps"]) // 2, len(curve["steps"])
    return [[_points(curve, range(middle))], [_points(curve, range(middle, count))]] if middle else []
