"""The run page from what was read: the answer, the plots, the tables."""

from sqlalchemy.orm import Session

from registry.ids import to_text
from registry.incidents.receipts import confirmations
from registry.incidents.suspicion import suspects_of
from registry.overview.attempts import progress_by_attempt
from registry.overview.runs import saved_steps
from registry.overview.scores import count_scores
from registry.runs import RunBrief
from registry.series import read_series
from registry.tokens import Caller
from ui import curves
from ui.charts import colour_of
from ui.commands import first_checkpoint
from ui.contexts import Link, Plot
from ui.contexts.run import AttemptRow, CheckpointRow, RunContext, ScoreColumn
from ui.finding_lines import finding_lines
from ui.incident_views import line_of
from ui.links import changed, to_cursor
from ui.pages.trackers import block_of
from ui.run.plots import incident_marks, run_plots, score_choices, score_links
from ui.run.reading import RunRead
from ui.run.summary import actions_of, alias_chip, answer_of, config_facts, facts_of, interruptions_of
from ui.run.tables import attempt_row, checkpoint_row, score_rows

AXES = ("auto", "linear", "log")
SHOWN_INCIDENTS = 5  # rows of the table


def run_context(session: Session, caller: Caller, read: RunRead, *, asked: bool, axis: str, paged: bool) -> RunContext:
    """`asked`: the address chose the scores; `axis`: its step axis as it is written; `paged`: not the first rows."""
    run, overview = read.run, read.overview
    identity = to_text(run.id)
    path = f"/runs/{identity}"
    here = {"score": [curves.metric_text(each) for each in read.chosen] if asked else [], "axis": axis}
    plots = _plots(session, read, axis)
    return RunContext(
        id=identity,
        name=run.name,
        project=run.project,
        colour=colour_of(identity),
        answer=answer_of(overview, read.newest, read.moment, read.struck),
        facts=facts_of(run, overview, read.newest),
        aliases=tuple(alias_chip(alias, run.project) for alias in read.own_aliases),
        plots=plots,
        plotted=score_links(path, axis, read.chosen, read.chosen),
        plot_choices=score_choices(path, axis, read.metrics, read.chosen, read.table),
        axis_choices=tuple(Link(each, changed(path, here, axis=each), each == axis) for each in AXES) if plots else (),
        score_columns=tuple(ScoreColumn(curves.metric_text(each)) for each in read.chosen),
        score_rows=score_rows(read.scored, read.chosen, read.scores, read.briefs),
        attempts=_attempts(session, read),
        checkpoints=_checkpoints(session, read),
        older=changed(path, here, after=to_cursor(read.next_after)) + "#checkpoints" if read.next_after else None,
        newer=changed(path, here) + "#checkpoints" if paged else None,
        trackers=block_of(session, caller, RunBrief(run.id, run.project_id, run.project, run.name), identity),
        config=config_facts(session, run),
        actions=actions_of(identity, overview, read.own_aliases, run.project),
        empty=() if overview.checkpoints else (first_checkpoint(run.project, run.name),),
        interruptions=interruptions_of(session, run, read.struck, read.moment),
        incidents=tuple(line_of(row) for row in read.struck[:SHOWN_INCIDENTS]),
        findings=finding_lines(session, [run.project_id], run.id),
    )


def _plots(session: Session, read: RunRead, axis: str) -> tuple[Plot, ...]:
    run = read.run
    return run_plots(
        run,
        read.attempts,
        read_series(session, run.project_id, run.id),
        saved_steps(session, run.project_id, run.id),
        read.chosen,
        read.scores,
        axis if axis in AXES else "auto",
        read.table,
        incident_marks(read.struck),
    )


def _attempts(session: Session, read: RunRead) -> tuple[AttemptRow, ...]:
    progress = progress_by_attempt(session, read.run.project_id, read.run.id)
    receipts = confirmations(session, read.run.project_id, read.run.id)
    origins = [attempt.resumed_from for attempt in read.attempts if attempt.resumed_from]
    followed = {origin.attempt for origin in origins if origin.run is None}
    return tuple(
        attempt_row(
            attempt,
            read.briefs,
            progress[attempt.number],
            receipts.get(attempt.number),
            is_followed=attempt.number in followed,
        )
        for attempt in read.attempts
    )


def _checkpoints(session: Session, read: RunRead) -> tuple[CheckpointRow, ...]:
    counts = count_scores(session, read.run.project_id, read.shown)
    suspects = suspects_of(session, read.shown)
    return tuple(
        checkpoint_row(read.briefs[each], read.own_aliases, counts.get(each, 0), each in suspects)
        for each in read.shown
    )
