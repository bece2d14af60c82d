"""From what a run recorded to charts: the loss and other curves, scores over steps, and the marks on both."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from registry.attempts import AttemptRow
from registry.evals.project_table import ProjectTable
from registry.filters import syntax
from registry.filters.print import field_to_text
from registry.ids import to_text
from registry.overview.runs import SavedStep
from registry.overview.scores import MetricName, RunScore
from registry.series import Curve
from ui import filters
from ui.charts import LineChart, Mark, Point, Series
from ui.charts.thin import thin_indexes

LENT = "measured on a lossless copy"
SCALES = {"fraction": "fraction", "percent": "percent", "ten": "1 to 10", "raw": "", "log": "perplexity"}


def metric_text(metric: MetricName) -> str:
    """A metric as a filter names it, without the leading scores.: gsm8k.exact_match."""
    return score_text(metric.benchmark, metric.metric, metric.filter)


def score_text(benchmark: str, metric: str, filter: str) -> str:
    """As `metric_text`, of the names alone."""
    names = [benchmark, *([metric] if metric or filter else []), *([filter] if filter else [])]
    return field_to_text(syntax.Field(("scores", *names))).removeprefix("scores.")


def scale_of(metric: MetricName, table: ProjectTable) -> str:
    """The scale that the project's benchmark table says; metrics of one scale may share a plot."""
    return table.for_metric(metric.benchmark, metric.metric, metric.filter).scale


def crowded_at_start(steps: Sequence[int]) -> bool:
    """Whether a third of the steps lie in the first twentieth: a log axis shows them apart."""
    positive = sorted(step for step in steps if step > 0)
    return len(positive) >= 6 and positive[len(positive) // 3] < positive[-1] / 20


def attempt_marks(attempts: Iterable[AttemptRow], saved: Sequence[SavedStep]) -> list[Mark]:
    """Where each attempt after the first went on from; a rollback where others had come further."""
    furthest: dict[int, int] = {}
    for each in saved:
        furthest[each.attempt] = max(each.step, furthest.get(each.attempt, 0))
    marks, reached = [], 0
    for attempt in attempts:
        start = attempt.resumed_from.step if attempt.resumed_from else None
        if attempt.number > 1 and start is not None:
            back = start < reached
            label = f"attempt {attempt.number}" + (f" from step {filters.grouped(start)}" if back else "")
            marks.append(Mark("rollback" if back else "attempt", float(start), label))
        elif attempt.number > 1:
            marks.append(Mark("attempt", 0.0, f"attempt {attempt.number}, from the start"))
        reached = max(reached, attempt.heartbeat_step or 0, start or 0, furthest.get(attempt.number, 0))
    return marks


def curve_series(curves: Sequence[Curve], attempts: Sequence[AttemptRow], colour: int) -> tuple[Series, ...]:
    """One line per attempt of one curve; the steps that a newer attempt superseded are drawn pale."""
    live = {attempt.number: attempt.live_through_step for attempt in attempts}
    lines = []
    for curve in curves:
        through = live.get(curve.attempt)
        kept_places = thin_indexes(curve.steps, curve.values)
        points = [Point(float(curve.steps[place]), curve.values[place]) for place in kept_places]
        kept = points if through is None else [point for point in points if point.x <= through]
        name, goes_on = f"attempt {curve.attempt}", len(kept) < len(points)
        if kept:
            lines.append(Series(name, tuple(kept), colour, label="" if goes_on else None))
        if goes_on:
            tail = tuple(points[max(0, len(kept) - 1) :])
            lines.append(Series(f"{name}, superseded", tail, colour, muted=True, label=name))
    return tuple(lines)


def score_series(
    metrics: Sequence[MetricName], scores: Sequence[RunScore], *, first_colour: int = 0
) -> tuple[Series, ...]:
    """One line per metric over the live path; what was superseded is left to the table."""
    lines = []
    for place, metric in enumerate(metrics):
        own = sorted(
            (score for score in scores if score.metric_id == metric.id and not score.superseded), key=lambda s: s.step
        )
        kept = thin_indexes([score.step for score in own], [score.value for score in own])
        points = tuple(
            Point(
                float(score.step),
                score.value,
                score.stderr,
                f"/checkpoints/{to_text(score.checkpoint_id)}",
                LENT if score.via is not None else "",
            )
            for score in (own[each] for each in kept)
        )
        lines.append(Series(metric_text(metric), points, (first_colour + place) % 7))
    return tuple(lines)


def with_axis(chart: LineChart, axis: str) -> LineChart:
    """The chart with the step axis that the URL asks for; 'auto' looks at where the steps lie."""
    if axis == "auto":
        steps = [int(point.x) for line in chart.series for point in line.points]
        return replace(chart, x_log=crowded_at_start(steps))
    return replace(chart, x_log=axis == "log")
