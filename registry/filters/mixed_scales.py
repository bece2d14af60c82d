"""Which values of a score a filter compares and orders: all, or where results mix scales those of the benchmark's own.

A 61.0 among fractions is no 6100 %: it is shown as it came, and is neither above nor below anything. Where every result
of a score is in another scale than the benchmark table says, their order is right, and so they all compare. That is
how populations are ranked too (`evals.columns.oriented`). The ends of each score's index tell, so it costs a look each.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Select, bindparam, literal, or_, select
from sqlalchemy.orm import Session

from registry.evals.project_table import ProjectTable
from registry.evals.scales import bounds
from registry.filters.scores import ScoreChoice
from registry.filters.tables import current_score, score_metric
from registry.types import Direction
from registry.upsert import chunks

Choices = Mapping[tuple[str, ...], ScoreChoice | None]
_VALUE = current_score.c.value
_LOW: Any = bindparam("low")
_HIGH: Any = bindparam("high")


def _with_value(*conditions: Any) -> Select[int]:
    """Whether one of the metrics has a value that meets one of the conditions. Made once: that costs most of it."""
    own = (
        current_score.c.project_id == score_metric.c.project_id,
        current_score.c.score_metric_id == score_metric.c.id,
    )
    some = (select(literal(1)).where(*own, each).correlate(score_metric).exists() for each in conditions)
    metrics = score_metric.c.id.in_(bindparam("metrics", expanding=True))
    return select(score_metric.c.id).where(metrics, or_(*some)).limit(1)


OUTSIDE: Final = _with_value(_VALUE < _LOW, _VALUE > _HIGH)
INSIDE: Final = _with_value(_VALUE.between(_LOW, _HIGH))


def within_scales(session: Session, choices: Choices, table: ProjectTable) -> dict[tuple[str, ...], ScoreChoice | None]:
    """The choices with `limits` where only a part of the values may compare."""
    found = {}
    for name, choice in choices.items():
        entry = None if choice is None else table.for_metric(choice.benchmark, choice.metric, choice.filter)
        limits = None if entry is None else bounds(entry.scale)
        if choice is not None and entry is not None and limits is not None and _has(session, OUTSIDE, choice, limits):
            always = entry.direction is Direction.TARGET
            choice = replace(choice, limits=limits if always or _has(session, INSIDE, choice, limits) else None)
        found[name] = choice
    return found


def _has(session: Session, statement: Select[int], choice: ScoreChoice, limits: tuple[float, float]) -> bool:
    ends = {"low": limits[0], "high": limits[1]}
    return any(
        session.scalar(statement, {"metrics": metrics, **ends}) is not None for metrics in chunks(choice.metric_ids())
    )
