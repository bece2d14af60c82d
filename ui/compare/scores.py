"""The scores and capabilities of a comparison as rows with their intervals."""

import math
from collections.abc import Iterable, Sequence

from registry.evals.catalogue import catalogue
from registry.evals.normalise import TOP
from registry.evals.project_table import ProjectTable
from registry.provenance.composites import CapabilityComparison
from registry.provenance.score_changes import ScoreComparison
from ui import filters
from ui.benchmark_counts import counted
from ui.contexts.compare import VerdictRow

MOVED = ("regressed", "suspected", "improved")
SHOWN_UNMOVED = 8  # benchmarks that did not move which are shown unasked
LEAST_REACH = 0.01  # half width of the interval column, as a share of the scale: one point
NOTHING_DETECTABLE = "none"  # no change that the scale allows
OTHER_SCALES = {"fraction": "", "percent": "", "ten": "on a scale to 10"}  # what a difference in points goes without
BETTER = {"lower": "lower is better", "target": "nearer to its target is better"}


def title_of(capability: str) -> str:
    return next((each.title for each in catalogue().capabilities if each.name == capability), capability)


def leading(scores: Sequence[ScoreComparison]) -> list[ScoreComparison]:
    moved = [each for each in scores if each.verdict in MOVED]
    others = [each for each in scores if each.verdict not in MOVED]
    return [*moved, *others[: max(0, SHOWN_UNMOVED - len(moved))]]


def reach_of(rows: Iterable[VerdictRow]) -> float:
    """Half the width of the interval column, in points: it holds all intervals but the widest twentieth."""
    ends = [
        abs(filters.finite(row.delta) or 0.0) + 1.645 * (filters.finite(row.stderr) or 0.0)
        for row in rows
        if row.in_points
    ]
    return max([LEAST_REACH, *sorted(ends)[: max(1, math.ceil(len(ends) * 0.95))]])


def score_row(each: ScoreComparison, table: ProjectTable) -> VerdictRow:
    scale = table.for_metric(each.benchmark, each.metric, each.filter).scale
    drawn, error = _drawn(each, scale)
    return VerdictRow(
        name=each.benchmark,
        metric=", ".join(filter(None, (each.metric, each.filter, BETTER.get(each.direction, ""), _own_scale(scale)))),
        baseline=filters.number(each.baseline),
        candidate=filters.number(each.candidate),
        delta=drawn,
        stderr=error,
        in_points=scale in TOP,
        delta_text=_raw_difference(each.delta, each.stderr, scale),
        p_value=each.p_value,
        q_value=each.q_value,
        minimum_detectable=_raw_size(each.minimum_detectable, scale) if each.detects else NOTHING_DETECTABLE,
        verdict=each.verdict,
        why=each.why_in_points if each.verdict in ("not_comparable", "suspected") or each.q_value is None else "",
        method=f"{each.method}; {each.why_in_points}" if each.q_value is not None else each.method,
        capability=each.capability or "",
    )


def _own_scale(scale: str) -> str:
    """Said of a row whose difference is no number of points of a hundred."""
    return OTHER_SCALES.get(scale, "on its own scale")


def _drawn(each: ScoreComparison, scale: str) -> tuple[float | None, float | None]:
    """(difference, standard error) for the drawn interval, which points the way that the number beside it does.

    As a share of the scale; a score without a top, as a perplexity, by its logarithm.
    """
    if each.delta is None or each.normalised is None:
        return None, None
    top = TOP.get(scale)
    if top is not None:
        return each.delta / top, None if each.stderr is None else each.stderr / top
    return math.copysign(each.normalised, each.delta), each.normalised_stderr


def _raw_difference(delta: float | None, stderr: float | None, scale: str) -> str:
    """In points where the scale is a fraction; a metric with another scale says its difference as it is."""
    if scale == "fraction":
        return filters.in_points(delta, stderr).removesuffix(" points")
    return filters.delta(delta, stderr)


def _raw_size(value: float | None, scale: str) -> str:
    if value is None:
        return filters.MISSING
    return filters.fixed(value * 100, 1) if scale == "fraction" else filters.number(value, 2)


def capability_row(each: CapabilityComparison, table: ProjectTable) -> VerdictRow:
    points = each.capability != "lm"  # perplexities are compared as logarithms, which have no points
    return VerdictRow(
        name=title_of(each.capability),
        metric=counted(each.benchmarks, table) + ("" if points else ", −ln of perplexity"),
        baseline=filters.fixed(each.baseline * 100, 1) if points else filters.number(each.baseline),
        candidate=filters.fixed(each.candidate * 100, 1) if points else filters.number(each.candidate),
        delta=each.delta,
        stderr=each.stderr,
        in_points=points,
        delta_text=filters.in_points(each.delta, each.stderr).removesuffix(" points")
        if points
        else filters.delta(each.delta, each.stderr),
        p_value=each.p_value,
        q_value=each.q_value,
        minimum_detectable=_raw_size(each.minimum_detectable, "fraction" if points else "log")
        if each.detects
        else NOTHING_DETECTABLE,
        verdict=each.verdict,
        why="",
        method=each.why_in_points,
    )
