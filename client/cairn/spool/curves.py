"""Which points of a curve are sent: every one around a start and a break, each tenth in between.

What a resume did to the loss is read from the steps right after it and right before the break. Between them a tenth
is enough to draw and to compare, and a run of a million steps stays small. Points that are not finite are always sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

DENSE_POINTS = 2_000  # of each attempt, from its start
STRIDE = 10
TAIL_POINTS = 500  # before an end or a break


def stretches(records: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The curves of `points` records, thinned, as the service takes them: steps ascend within each stretch."""
    merged: list[dict[str, Any]] = []
    open_: dict[str, dict[str, Any]] = {}
    for record in records:
        for name, curve in record.get("curves", {}).items():
            kept = _thinned(curve, bool(record.get("dense")))
            for step, value in kept:
                last = open_.get(name)
                if last is None or step <= last["steps"][-1]:
                    last = {"name": name, "steps": [], "values": []}
                    open_[name] = last
                    merged.append(last)
                last["steps"].append(step)
                last["values"].append(value)
    return merged


def tail(records: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """A dense `points` record of the last points of each curve; None where there are none. What is no curve is passed
    over."""
    curves: dict[str, dict[str, Any]] = {}
    for record in records:
        said = record.get("curves")
        for name, curve in said.items() if isinstance(said, dict) else ():
            if not isinstance(curve, dict) or not all(
                isinstance(curve.get(each), list) for each in ("steps", "values")
            ):
                continue
            known = curves.setdefault(name, {"first": 0, "steps": [], "values": []})
            known["steps"] = [*known["steps"], *curve["steps"]][-TAIL_POINTS:]
            known["values"] = [*known["values"], *curve["values"]][-TAIL_POINTS:]
    return {"kind": "points", "curves": curves, "dense": True} if curves else None


def _thinned(curve: Mapping[str, Any], dense: bool) -> Sequence[tuple[int, Any]]:
    """`first` is how many points of the curve came before in this attempt, so that a repeat keeps the same ones."""
    pairs = list(zip(curve["steps"], curve["values"], strict=False))
    if dense:
        return pairs
    return [
        (step, value)
        for at, (step, value) in enumerate(pairs, start=curve["first"])
        if at < DENSE_POINTS or at % STRIDE == 0 or isinstance(value, str)
    ]
