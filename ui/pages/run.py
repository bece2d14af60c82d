"""One run: is it healthy, how did its loss and scores go, which checkpoints and attempts does it have."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.aliases import AliasRow, list_aliases
from registry.attempts import AttemptRow as Attempt
from registry.attempts import list_attempts
from registry.checkpoints.detail import read_config
from registry.checkpoints.queries import list_checkpoints
from registry.db import now
from registry.evals.project_table import read_project_table
from registry.ids import from_text, to_text
from registry.incidents.queries import Asked, list_incidents, summarise
from registry.incidents.receipts import Confirmation, confirmations
from registry.incidents.shapes import IncidentRow
from registry.incidents.suspicion import suspects_of
from registry.overview.attempts import Saves, saves_by_attempt
from registry.overview.briefs import Brief, read_briefs
from registry.overview.runs import RunOverview, get_run_overview, saved_steps
from registry.overview.scores import MetricName, RunScore, count_scores, metrics_of_run, scores_of_run
from registry.runs import RunBrief, RunNotFound, RunRow, get_run
from registry.series import read_series
from registry.snapshots import flatten
from registry.tokens import Caller
from registry.types import Resumability
from ui import curves, filters
from ui.access import ViewerDep
from ui.charts import colour_of
from ui.commands import first_checkpoint
from ui.contexts import Answer, Chip, Fact, Link
from ui.contexts.run import AttemptRow, CheckpointRow, RunContext, ScoreCell, ScoreColumn, ScoreTableRow
from ui.csv_files import csv_file
from ui.finding_lines import finding_lines
from ui.incident_views import line_of, sentence
from ui.links import address, changed, from_cursor, segment, to_cursor
from ui.pages.trackers import block_of
from ui.refs import config_text, is_reported, ref_of, run_state, saved_in_words
from ui.render import RUN_TONES
from ui.respond import show
from ui.run_plots import chosen_metrics, incident_marks, run_plots, score_choices, score_links

router = APIRouter(include_in_schema=False)

TABLE_ROWS = 30
INCIDENTS, SHOWN_INCIDENTS = 200, 5  # marks on the plots, rows of the table
AXES = ("auto", "linear", "log")


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
    attempts, moment = list_attempts(session, run.id), now()
    metrics = metrics_of_run(session, run.project_id, run.id)
    table = read_project_table(session, [run.project_id])
    chosen = chosen_metrics(metrics, score or [], table)
    scores = scores_of_run(session, run.project_id, run.id, [metric.id for metric in chosen]) if chosen else []
    page = list_checkpoints(
        session,
        project_ids=[run.project_id],
        filter=f"run.id = '{to_text(run.id)}'",
        order_by="attempt desc, step desc",
        limit=TABLE_ROWS,
        after=from_cursor(after),
    )
    aliases = list_aliases(session, [run.project_id])
    shown = [row.checkpoint.id for row in page.rows]
    resumed = [a.resumed_from.checkpoint_id for a in attempts if a.resumed_from and a.resumed_from.checkpoint_id]
    newest = [overview.newest_id] if overview.newest_id else []
    scored = list(dict.fromkeys(each.checkpoint_id for each in reversed(scores)))[:TABLE_ROWS]
    briefs = read_briefs(session, [*shown, *resumed, *newest, *scored, *(a.checkpoint_id for a in aliases)])
    own = [alias for alias in aliases if briefs[alias.checkpoint_id].run_id == run.id]
    path = f"/runs/{run_id}"
    here = {"score": [curves.metric_text(each) for each in chosen] if score else [], "axis": axis}
    series = read_series(session, run.project_id, run.id)
    saved = saved_steps(session, run.project_id, run.id)
    struck = list_incidents(session, Asked([run.project_id], run.id), limit=INCIDENTS)
    marks = incident_marks(struck)
    plots = run_plots(run, attempts, series, saved, chosen, scores, axis if axis in AXES else "auto", table, marks)
    counts = count_scores(session, run.project_id, shown)
    saves = saves_by_attempt(session, run.project_id, run.id)
    suspects = suspects_of(session, shown)
    receipts = confirmations(session, run.project_id, run.id)
    context = RunContext(
        id=run_id,
        name=run.name,
        project=run.project,
        colour=colour_of(run_id),
        answer=_answer(overview, briefs.get(overview.newest_id or 0), moment, struck),
        facts=_facts(run, overview, briefs.get(overview.newest_id or 0)),
        aliases=tuple(_alias_chip(alias, run.project) for alias in own),
        plots=plots,
        plotted=score_links(path, axis, chosen, chosen),
        plot_choices=score_choices(path, axis, metrics, chosen, table),
        axis_choices=tuple(Link(each, changed(path, here, axis=each), each == axis) for each in AXES) if plots else (),
        score_columns=tuple(ScoreColumn(curves.metric_text(each)) for each in chosen),
        score_rows=_score_rows(scored, chosen, scores, briefs),
        attempts=tuple(
            _attempt_row(attempt, briefs, saves.get(attempt.number), receipts.get(attempt.number))
            for attempt in attempts
        ),
        checkpoints=tuple(_checkpoint_row(briefs[each], own, counts.get(each, 0), each in suspects) for each in shown),
        older=changed(path, here, after=to_cursor(page.next_after)) + "#checkpoints" if page.next_after else None,
        newer=changed(path, here) + "#checkpoints" if after else None,
        trackers=block_of(session, viewer.caller, RunBrief(run.id, run.project_id, run.project, run.name), run_id),
        config=_config(session, run),
        actions=_actions(run_id, overview, own, run.project),
        empty=() if overview.checkpoints else (first_checkpoint(run.project, run.name),),
        interruptions=_interruptions(session, run, struck, moment),
        incidents=tuple(line_of(row) for row in struck[:SHOWN_INCIDENTS]),
        findings=finding_lines(session, [run.project_id], run.id),
    )
    notices = _left_out(metrics, score or [], axis)
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


def _answer(run: RunOverview, newest: Brief | None, moment: datetime, struck: Sequence[IncidentRow]) -> Answer:
    state = run_state(run, moment)
    attempt = f", attempt {run.attempt}" if run.attempt is not None and run.attempt > 1 else ""
    head = "Nobody reports its state" if state == "not reported" else f"{state.capitalize()}{attempt}"
    tone = RUN_TONES.get(state, "unknown")
    open_one = next((each for each in struck if each.ending is None), None)
    if open_one is not None:
        head, tone = f"{head}, interrupted {filters.ago(open_one.occurred_at, moment)} and not recovered", "bad"
    if newest is None:
        return Answer(f"{head}; no checkpoint yet, so nothing to come back to.", "warn")
    usable = {
        Resumability.EXACT: "it resumes exactly",
        Resumability.RESUMABLE: "it is resumable",
        Resumability.WEIGHTS_ONLY: "it holds weights only",
        Resumability.INCOMPLETE: "it is incomplete",
        Resumability.UNKNOWN: "whether it can be resumed is unknown",
    }[newest.resumability]
    return Answer(
        f"{head}; the newest checkpoint, step {filters.grouped(newest.step)}, was "
        f"{saved_in_words(newest, moment)}: {usable}.",
        tone,
    )


def _facts(run: RunRow, overview: RunOverview, newest: Brief | None) -> tuple[Fact, ...]:
    known = [
        Fact("parameters", filters.count(run.parameter_count), filters.exact(run.parameter_count)),
        Fact("checkpoints", filters.grouped(overview.checkpoints)),
        Fact("attempts", filters.grouped(overview.attempts)),
    ]
    if newest is not None:
        known.append(Fact("tokens seen", filters.count(newest.tokens_seen), filters.exact(newest.tokens_seen)))
        known.append(Fact("data", filters.middle(newest.data_version or filters.MISSING), newest.data_version or ""))
        known.append(Fact("loss", filters.number(newest.loss), filters.exact(newest.loss)))
    known = [fact for fact in known if fact.value != filters.MISSING]
    for name, value in (("kind", run.kind), ("family", run.model_family), ("owner", run.owner), ("team", run.team)):
        if value:
            known.append(Fact(name, filters.middle(value, 40), value))
    known += [Fact(filters.middle(name, 30), filters.middle(value, 40), value) for name, value in run.tags.items()]
    return tuple(known)


def _score_rows(
    ids: Sequence[int], metrics: Sequence[MetricName], scores: Sequence[RunScore], briefs: dict[int, Brief]
) -> tuple[ScoreTableRow, ...]:
    found = {(score.checkpoint_id, score.metric_id): _score_cell(score) for score in scores}
    return tuple(
        ScoreTableRow(ref_of(briefs[each]), tuple(found.get((each, metric.id), ScoreCell()) for metric in metrics))
        for each in ids
        if each in briefs
    )


def _score_cell(score: RunScore) -> ScoreCell:
    via = None if score.via is None else f"/checkpoints/{to_text(score.via)}"
    return ScoreCell(score.value, score.stderr, via)


def _interruptions(session: Session, run: RunRow, struck: Sequence[IncidentRow], moment: datetime) -> Answer | None:
    if not struck:
        return None
    return sentence(summarise(session, Asked([run.project_id], run.id)), struck[0], moment)


def _attempt_row(
    attempt: Attempt, briefs: dict[int, Brief], saves: Saves | None, receipt: Confirmation | None
) -> AttemptRow:
    point = attempt.resumed_from
    loaded = briefs.get(point.checkpoint_id) if point and point.checkpoint_id else None
    reached = [step for step in (attempt.heartbeat_step, saves.last_step if saves else None) if step is not None]
    words = "from scratch" if point is None else f"step {filters.grouped(point.step)}, not registered"
    return AttemptRow(
        number=attempt.number,
        state=attempt.state if is_reported(attempt) else "not reported",
        resumed_from=ref_of(loaded) if loaded else None,
        resumed_words=words if not attempt.restart or attempt.number == 1 else "started over",
        started_at=attempt.started_at,
        ended_at=attempt.ended_at,
        last_step=max(reached, default=None),
        live_through=attempt.live_through_step,
        reason=attempt.reason,
        checkpoints=saves.checkpoints if saves else 0,
        started_over=attempt.live_through_step is not None and attempt.live_through_step < 0,
        resume=_resume_words(receipt) if point is not None else "",
        resume_tone={"confirmed": "good", "partial": "warn"}.get(receipt.state if receipt else "", "unknown"),
        skips=tuple(attempt.skip),
        changes=attempt.changes or "",
    )


def _resume_words(receipt: Confirmation | None) -> str:
    """What was restored, as the attempt's receipts say: loading a piece may have been a no-op."""
    if receipt is None or receipt.state == "unconfirmed":
        return "unconfirmed"
    if receipt.state == "confirmed":
        return "confirmed"
    missing = [
        f"{filters.words(piece)} {word}" for piece, word in receipt.pieces.items() if word in ("fresh", "absent")
    ]
    return ", ".join(missing)


def _checkpoint_row(brief: Brief, aliases: Sequence[AliasRow], scores: int, suspect: bool) -> CheckpointRow:
    return CheckpointRow(
        ref=ref_of(brief, suspect=suspect),
        resumability=brief.resumability.value,
        loss=brief.loss,
        tokens_seen=brief.tokens_seen,
        bytes=brief.copies.bytes,
        replicas=", ".join(brief.copies.tiers) or "none recorded",
        scores=scores,
        aliases=tuple(alias.name for alias in aliases if alias.checkpoint_id == brief.id),
    )


def _alias_chip(alias: AliasRow, project: str) -> Chip:
    return Chip(alias.name, f"/aliases/{segment(project)}/{segment(alias.name)}")


def _config(session: Session, run: RunRow) -> tuple[Fact, ...]:
    config = read_config(session, run.config_id)
    if config is None:
        return ()
    return tuple(Fact(path, config_text(value), mono=True) for path, value in flatten(config))


def _actions(run_id: str, overview: RunOverview, aliases: Sequence[AliasRow], project: str) -> tuple[Link, ...]:
    if overview.newest_id is None:
        return ()
    newest = to_text(overview.newest_id)
    links = [Link("Roll this run back", address("/rollback", run=run_id))]
    links += [
        Link(
            f"Compare the newest with {alias.name}",
            address("/compare", baseline=f"{project}/{alias.name}", candidate=newest),
        )
        for alias in aliases[:2]
        if alias.checkpoint_id != overview.newest_id
    ]
    links.append(Link("Benchmarks of its project", address("/benchmarks", project=project)))
    query = f"run.id = '{run_id}' and not superseded"
    links.append(
        Link(
            "Filter its checkpoints", address("/find", mode="filter", filter=query, order_by="attempt desc, step desc")
        )
    )
    return tuple(links)
