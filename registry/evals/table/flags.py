"""What the figures of a benchmark show that its entry in the table does not say. Nothing is rescaled by guess."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.columns import off_scale
from registry.evals.project_table import ProjectTable
from registry.models import CurrentScore
from registry.types import Direction


@dataclass(frozen=True, slots=True)
class MetricRange:
    """A metric that results have, with the least and the greatest finite value that counts, if any does."""

    metric: str
    filter: str
    low: float | None
    high: float | None


def read_ranges(
    session: Session, project_id: int, occurring: Mapping[str, Sequence[tuple[int, str, str]]]
) -> dict[str, tuple[MetricRange, ...]]:
    """The range of every metric (id, metric, filter) of these benchmarks: two steps into an index for each."""
    found: dict[str, tuple[MetricRange, ...]] = {}
    for name, metrics in occurring.items():
        ranges = []
        for metric_id, metric, filter in metrics:
            here = (
                CurrentScore.project_id == project_id,
                CurrentScore.score_metric_id == metric_id,
                CurrentScore.value.is_not(None),
            )
            low = select(func.min(CurrentScore.value)).where(*here).scalar_subquery()
            high = select(func.max(CurrentScore.value)).where(*here).scalar_subquery()
            ranges.append(MetricRange(metric, filter, *session.execute(select(low, high)).one()))
        found[name] = tuple(ranges)
    return found


def may_be_two_scales(low: float, high: float) -> bool:
    """Whether shares written as 0.6 and as 60 could both be among values that nobody gave a scale."""
    return 0 < low < 1 < high <= 100


def flags_of(name: str, ranges: Sequence[MetricRange], table: ProjectTable) -> Iterator[str]:
    """In words: figures off the scale, figures in two scales, and metrics that point in different directions."""
    directions: dict[Direction, list[str]] = {}
    scales: dict[str, list[str]] = {}
    for each in ranges:
        row = table.for_metric(name, each.metric, each.filter)
        shown = ",".join(part for part in (each.metric, each.filter) if part) or "its score"
        directions.setdefault(row.direction, []).append(shown)
        if row.scale in ("fraction", "percent"):
            scales.setdefault(row.scale, []).append(shown)
        if each.low is None or each.high is None:
            continue
        if row.scale == "raw" and row.direction is Direction.HIGHER and may_be_two_scales(each.low, each.high):
            yield (
                f"Figures of {shown} run from {each.low:g} to {each.high:g}: they may be percent in one file and "
                "fractions in another. Say which scale it is on; what is off it is then left out, not rescaled."
            )
        low_off, high_off = off_scale(np.array([each.low, each.high]), row).tolist()
        if low_off and high_off:
            yield (
                f"Every figure of {shown} ({each.low:g} to {each.high:g}) is off the scale '{row.scale}': "
                "say which scale it is on."
            )
        elif low_off or high_off:
            yield (
                f"Figures of {shown} run from {each.low:g} to {each.high:g}: some are off the scale '{row.scale}' and "
                "are left out of rankings, not rescaled. Import those again in one scale."
            )
    if len(directions) > 1:
        parts = [f"{' and '.join(names)} {direction.value}" for direction, names in sorted(directions.items())]
        yield f"Its metrics point in different directions: {'; '.join(parts)}. Each is read by its own."
    if len(scales) > 1:
        parts = [f"{' and '.join(names)} as {scale}" for scale, names in sorted(scales.items())]
        yield f"Its metrics are counted on different scales: {'; '.join(parts)}. They are never mixed."
