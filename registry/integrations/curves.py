"""Bringing a tracker's curves into the registry: thinned for display, exact where a checkpoint is."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sqlalchemy.orm import Session

from registry import series, strict_json
from registry.integrations.apply import Applied
from registry.integrations.shapes import Skipped, TrackerSeries
from registry.integrations.thin import thin
from registry.series import Points
from registry.trackers.linking import set_state

MAX_NAME: Final = 512


def thinned(found: TrackerSeries, keep: Collection[int]) -> TrackerSeries:
    """The curve with as many points as a plot can show, and every step of `keep` that it has."""
    steps, values = thin(found.steps, found.values, keep)
    return replace(found, steps=steps, values=values)


def apply_series(
    session: Session, project_id: int, applied: Applied, found: Sequence[TrackerSeries], marks: Mapping[str, str]
) -> tuple[int, list[Skipped]]:
    """Keep what is new of these curves; gives the number of points that were new, and what was left out.

    Points that the training recorded here itself stay: only a curve that came through the same link is corrected.
    """
    usable = [each for each in found if each.steps and 0 < len(each.name) <= MAX_NAME and each.name.isprintable()]
    skipped = [reason for each in found for reason in each.skipped]
    recorded = {
        curve.name: dict(zip(curve.steps, curve.values, strict=True))
        for curve in series.read_series(session, project_id, applied.run_id, [each.name for each in usable])
        if curve.attempt == applied.attempt
    }
    stretches, added = [], 0
    for each in usable:
        before = recorded.get(each.name, {})
        may_correct = each.name in applied.curves
        new = {
            step: value
            for step, value in zip(each.steps, each.values, strict=True)
            if step not in before or (may_correct and not _same(before[step], value))
        }
        if new:
            stretches.append(Points(each.name, list(new), list(new.values()), applied.attempt))
            added += len(new)
    if stretches:
        series.record_series(session, applied.run_id, stretches)
    if marks:
        set_state(session, applied.link, curves=strict_json.canonical({**applied.curves, **marks}))
    return added, skipped


def _same(one: float, other: float) -> bool:
    return one == other or (one != one and other != other)
