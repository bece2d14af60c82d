"""One run: is it healthy, how did its loss and scores go, which checkpoints and attempts does it have."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.ids import from_text, to_text
from registry.overview.runs import RunOverview, get_run_overview
from registry.overview.scores import MetricName, metrics_of_run, scores_of_run
from registry.runs import RunNotFound, RunRow, get_run
from registry.series import read_series
from registry.tokens import Caller
from ui import curves, filters
from ui.access import ViewerDep
from ui.csv_files import csv_file
from ui.links import from_cursor
from ui.respond import show
from ui.run.context import AXES, run_context
from ui.run.reading import read_run_page

router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}")
def run_page(
    run_id: str,
    session: SessionDep,
    viewer: ViewerDep,
    score: Annotated[list[str] | None, Query()] = None,
    axis: str = "auto",
    after: str = "",
) -> HTMLResponse:
    """`score` (repeated) chooses the scores to plot, as a filter names them: gsm8k.exact_match."""
    run, overview = _run(session, viewer.caller, run_id)
    read = read_run_page(session, run, overview, score or [], from_cursor(after))
    context = run_context(session, viewer.caller, read, asked=bool(score), axis=axis, paged=bool(after))
    notices = _left_out(read.metrics, score or [], axis)
    title = filters.middle(run.name, 60)
    return show("run.html", context, title=title, section="Runs", viewer=viewer, notices=notices)


def _left_out(metrics: Sequence[MetricName], scores: Sequence[str], axis: str) -> list[str]:
    """What the address asks for and this run does not have."""
    names = {curves.metric_text(each) for each in metrics}
    said = [f"This run has no score ‘{filters.middle(text, 60)}’." for text in scores if text not in names]
    if axis not in AXES:
        said.append(f"‘{filters.middle(axis, 40)}’ is no step axis: {', '.join(AXES[:-1])} or {AXES[-1]}.")
    return said


@router.get("/runs/{run_id}/scores.csv")
def run_scores_csv(run_id: str, session: SessionDep, viewer: ViewerDep) -> StreamingResponse:
    """Every current score of the run, superseded checkpoints included and marked; `via` the copy it was measured on."""
    run, _ = _run(session, viewer.caller, run_id)
    names = {metric.id: metric for metric in metrics_of_run(session, run.project_id, run.id)}
    header = ("checkpoint", "attempt", "step", "superseded", "benchmark", "metric", "filter", "value", "stderr", "via")
    rows = [
        (
            to_text(score.checkpoint_id),
            score.attempt,
            score.step,
            "yes" if score.superseded else "no",
            names[score.metric_id].benchmark,
            names[score.metric_id].metric,
            names[score.metric_id].filter,
            score.value,
            score.stderr,
            "" if score.via is None else to_text(score.via),
        )
        for score in scores_of_run(session, run.project_id, run.id)
    ]
    return csv_file(f"{run.name}-scores", header, rows)


@router.get("/runs/{run_id}/curves.csv")
def run_curves_csv(run_id: str, session: SessionDep, viewer: ViewerDep, name: str = "") -> StreamingResponse:
    """Every point of the run's curves, or of the one named."""
    run, _ = _run(session, viewer.caller, run_id)
    found = read_series(session, run.project_id, run.id, [name] if name else None)
    rows = (
        (curve.name, curve.attempt, step, value)
        for curve in found
        for step, value in zip(curve.steps, curve.values, strict=True)
    )
    return csv_file(f"{run.name}-curves", ("curve", "attempt", "step", "value"), rows)


def _run(session: Session, caller: Caller, run_id: str) -> tuple[RunRow, RunOverview]:
    number = from_text(run_id)
    overview = get_run_overview(session, number) if number is not None else None
    if overview is None:
        raise RunNotFound(f"There is no run {run_id[:40]!r}. The list of runs has those that exist.")
    caller.require_project(overview.project_id)
    return get_run(session, overview.id), overview
