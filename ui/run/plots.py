"""The plots of a run page: which scores to show unasked, which may share a plot, where their numbers are."""

from collections.abc import Sequence

from registry.attempts import AttemptRow
from registry.evals.catalogue import catalogue
from registry.evals.project_table import ProjectTable
from registry.ids import to_text
from registry.incidents.causes import cause_of
from registry.incidents.shapes import IncidentRow
from registry.overview.runs import SavedStep
from registry.overview.scores import MetricName, RunScore
from registry.runs import RunRow
from registry.series import Curve
from registry.types import Direction
from ui import curves
from ui.charts import LineChart, Mark, colour_of, has_data
from ui.contexts import Link, Plot
from ui.contexts.run import ScoreChoices
from ui.links import address

SHOWN_SCORES = 4  # lines of one plot that can be told apart at a glance
SHARED = ("fraction", "percent", "ten")  # scales whose scores may stand on one axis
KINDS = ("checkpoint", "attempt", "rollback", "incident")


def chosen_metrics(metrics: Sequence[MetricName], asked: Sequence[str], table: ProjectTable) -> list[MetricName]:
    """The metrics that the URL names; without any, the most evaluated benchmark of each of a few capabilities."""
    if asked:
        by_text = {curves.metric_text(metric): metric for metric in metrics}
        return [by_text[text] for text in dict.fromkeys(asked) if text in by_text]
    leading = [metric for metric in metrics if _is_preferred(metric, metrics, table)]
    of_capability: dict[str | None, MetricName] = {}
    for metric in leading:
        row = table.for_metric(metric.benchmark, metric.metric, metric.filter)
        if row.scale == "fraction" and row.direction is Direction.HIGHER and row.part_of is None:
            of_capability.setdefault(row.capability, metric)
    known = [of_capability[each.name] for each in catalogue().capabilities if each.name in of_capability]
    return (known or leading)[:SHOWN_SCORES]


def _is_preferred(metric: MetricName, metrics: Sequence[MetricName], table: ProjectTable) -> bool:
    available = {(each.metric, each.filter): each.count for each in metrics if each.benchmark == metric.benchmark}
    return table.preferred_metric(metric.benchmark, available) == (metric.metric, metric.filter)


def score_links(path: str, axis: str, metrics: Sequence[MetricName], chosen: Sequence[MetricName]) -> tuple[Link, ...]:
    """Each metric as a link that adds it to the plots, or takes it out where it is among the chosen."""
    texts = [curves.metric_text(metric) for metric in chosen]
    links = []
    for metric in metrics:
        text = curves.metric_text(metric)
        others = [each for each in texts if each != text] if text in texts else [*texts, text]
        href = address(path, score=others, axis=axis if axis != "auto" else "") + "#curves"
        links.append(Link(text, href, text in texts))
    return tuple(links)


def score_choices(
    path: str, axis: str, metrics: Sequence[MetricName], chosen: Sequence[MetricName], table: ProjectTable
) -> tuple[ScoreChoices, ...]:
    """Every metric, by capability and benchmark; subtasks such as single subjects come last."""
    titles = {capability.name: capability.title for capability in catalogue().capabilities}
    groups: dict[str, dict[str, list[Link]]] = {}
    for metric, link in zip(metrics, score_links(path, axis, metrics, chosen), strict=True):
        row = table.for_metric(metric.benchmark, metric.metric, metric.filter)
        title = f"Parts of {row.part_of}" if row.part_of else titles.get(row.capability or "", "Others")
        text = ", ".join(filter(None, (metric.metric, metric.filter))) or "value"
        shown = Link(text, link.href, link.chosen)
        groups.setdefault(title, {}).setdefault(metric.benchmark, []).append(shown)
    order = [*titles.values(), "Others"]
    names = sorted(groups, key=lambda name: (order.index(name) if name in order else len(order), name))
    return tuple(
        ScoreChoices(name, tuple((benchmark, tuple(links)) for benchmark, links in sorted(groups[name].items())))
        for name in names
    )


def run_plots(
    run: RunRow,
    attempts: Sequence[AttemptRow],
    series: Sequence[Curve],
    saved: Sequence[SavedStep],
    metrics: Sequence[MetricName],
    scores: Sequence[RunScore],
    axis: str,
    table: ProjectTable,
    incidents: Sequence[Mark] = (),
) -> tuple[Plot, ...]:
    """The recorded curves, then the scores, those of one scale on one plot. `table`: the project's benchmark table."""
    marks = (*_checkpoint_marks(saved), *curves.attempt_marks(attempts, saved), *incidents)
    charts = [
        *_curve_charts(run, attempts, series or loss_of_checkpoints(saved), marks),
        *_score_charts(run, metrics, scores, marks, table),
    ]
    return tuple(
        Plot(curves.with_axis(chart, axis), caption, href, place, tuple(k for k in KINDS if _occurs(k, marks)))
        for chart, caption, href, place in charts
        if has_data(chart)
    )


Drawn = tuple[LineChart, str, str, str | None]  # chart, caption, address of its CSV, place of its table


def _occurs(kind: str, marks: Sequence[Mark]) -> bool:
    return any(mark.kind == kind for mark in marks)


def incident_marks(struck: Sequence[IncidentRow]) -> tuple[Mark, ...]:
    """Where training stood when it was interrupted, as far as that is known."""
    return tuple(
        Mark("incident", float(each.last_step), cause_of(each.cause).title, f"/incidents/{to_text(each.id)}")
        for each in struck
        if each.last_step is not None
    )


def _checkpoint_marks(saved: Sequence[SavedStep]) -> list[Mark]:
    return [
        Mark(
            "checkpoint",
            float(each.step),
            f"checkpoint, attempt {each.attempt}, step {each.step}{', superseded' if each.superseded else ''}",
            f"/checkpoints/{to_text(each.checkpoint_id)}",
        )
        for each in saved
    ]


def loss_of_checkpoints(saved: Sequence[SavedStep]) -> list[Curve]:
    """The loss that checkpoints were saved with, for a run that recorded no curve."""
    by_attempt: dict[int, dict[int, float]] = {}
    for each in saved:
        if each.loss is not None:
            by_attempt.setdefault(each.attempt, {})[each.step] = each.loss
    return [
        Curve(attempt, "loss at checkpoints", tuple(points), tuple(points.values()))
        for attempt, points in by_attempt.items()
    ]


def _curve_charts(
    run: RunRow, attempts: Sequence[AttemptRow], series: Sequence[Curve], marks: tuple[Mark, ...]
) -> list[Drawn]:
    colour = colour_of(to_text(run.id))
    drawn: list[Drawn] = []
    for name in sorted({curve.name for curve in series}, key=lambda name: (not name.startswith("loss"), name)):
        lines = curves.curve_series([curve for curve in series if curve.name == name], attempts, colour)
        caption = "Superseded steps are drawn pale." if any(line.muted for line in lines) else ""
        chart = LineChart(f"curve-{len(drawn)}", name, lines, y_label=name, marks=marks)
        drawn.append((chart, caption, address(f"/runs/{to_text(run.id)}/curves.csv", name=name), None))
    return drawn


def _score_charts(
    run: RunRow,
    metrics: Sequence[MetricName],
    scores: Sequence[RunScore],
    marks: tuple[Mark, ...],
    table: ProjectTable,
) -> list[Drawn]:
    groups: dict[str, list[MetricName]] = {}
    for metric in metrics:
        scale = curves.scale_of(metric, table)
        groups.setdefault(scale if scale in SHARED else curves.metric_text(metric), []).append(metric)
    colour = colour_of(to_text(run.id))
    drawn: list[Drawn] = []
    for members in groups.values():
        alone, scale = len(members) == 1, curves.scale_of(members[0], table)
        lines = curves.score_series(members, scores, first_colour=colour if alone else 0)
        title = curves.metric_text(members[0]) if alone else "Scores"
        errors = any(point.error for line in lines for point in line.points)
        caption = "Bars are ± one standard error." if errors else "No standard error is recorded."
        if any(point.lent for line in lines for point in line.points):
            caption += f" Dashed: {curves.LENT}."
        label = ", ".join(filter(None, ("score", curves.SCALES[scale])))
        chart = LineChart(
            f"scores-{len(drawn)}", title, lines, y_label=label, marks=marks, y_log=alone and scale == "log"
        )
        drawn.append((chart, caption, f"/runs/{to_text(run.id)}/scores.csv", "#scores"))
    return drawn
