"""Which checkpoint to go back to, and what it costs: for a run in training, or for an alias in production."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse

from api.deps import SessionDep
from registry.errors import Malformed
from registry.evals.project_table import read_project_table
from registry.ids import to_text
from registry.overview.briefs import read_briefs
from registry.overview.scores import metrics_of_run
from registry.recovery.answers import RollbackAnswer
from ui.access import ViewerDep, may_write
from ui.commands import first_steps
from ui.contexts import Answer, Link
from ui.contexts.rollback import RollbackContext
from ui.csv_files import csv_file
from ui.links import address
from ui.respond import go_to, show
from ui.rollback.context import rollback_context
from ui.rollback.question import FEW, ask, left_out_of, read_fields, read_question, shown_day
from ui.rollback.subjects import alias_links, default_subject, run_links, run_of, subject_of, watch_choices_of

router = APIRouter(include_in_schema=False)


class UnreadableQuestion(Malformed):
    code = "unreadable-question"
    title = "A part of the question could not be read"


FieldsDep = Annotated[dict[str, str], Depends(read_fields)]


@router.get("/rollback")
def rollback_page(request: Request, fields: FieldsDep, session: SessionDep, viewer: ViewerDep) -> Response:
    """Unasked, it goes on to what has an answer, with everything else that the address says."""
    if not fields["run"] and not fields["alias"]:
        said = {name: text for name, text in request.query_params.items() if name not in ("run", "alias")}
        default = default_subject(session, viewer.caller, said)
        if default is None:
            context = RollbackContext(
                Answer("There is no run to roll back yet."), (), (), None, fields, empty=first_steps(request)
            )
            return show("rollback.html", context, title="Roll back", section="Roll back", viewer=viewer)
        return go_to(default)
    asked = read_question(session, viewer.caller, fields)
    answer, errors = ask(session, viewer.caller, asked)
    run_id = asked.run_id or run_of(answer)
    metrics = metrics_of_run(session, asked.project_id, run_id) if run_id else []
    briefs = read_briefs(session, _named(answer))
    table = read_project_table(session, [asked.project_id])
    context = rollback_context(
        answer,
        briefs,
        fields={**fields, "mode": asked.mode},
        days={"after": shown_day(asked.after), "before": shown_day(asked.before)},
        errors={**asked.errors, **errors},
        subject=subject_of(session, asked),
        watch_choices=watch_choices_of(metrics, table),
        more=_more(fields, answer),
        table=table,
        alias_choices=alias_links(session, viewer.caller, asked.alias),
        run_choices=run_links(session, viewer.caller, asked.run_id),
    )
    if not may_write(viewer.caller):
        context = replace(context, watch_form={})
    notices = left_out_of(fields, context.errors)
    return show("rollback.html", context, title="Roll back", section="Roll back", viewer=viewer, notices=notices)


@router.get("/rollback.csv")
def rollback_csv(fields: FieldsDep, session: SessionDep, viewer: ViewerDep) -> StreamingResponse:
    """The watched score at every evaluated checkpoint of the path, on the common scale where larger is better.

    A file cannot say what was left out, so a part that is not understood is refused. Raises UnreadableQuestion.
    """
    asked = read_question(session, viewer.caller, fields)
    answer, errors = ask(session, viewer.caller, asked, every_point=True)
    refused = left_out_of(fields, asked.errors | errors)
    if refused:
        raise UnreadableQuestion(" ".join(refused))
    points = answer.onset.points if answer.onset else ()
    header = ("checkpoint", "run", "attempt", "step", "value", "stderr", "p_already_bad")
    rows = [
        (
            to_text(each.checkpoint.id),
            each.checkpoint.run.name,
            each.checkpoint.attempt,
            each.checkpoint.step,
            each.value,
            each.stderr,
            each.p_bad,
        )
        for each in points
    ]
    return csv_file("rollback-onset", header, rows)


def _named(answer: RollbackAnswer) -> list[int]:
    """The ids of every checkpoint that the answer speaks of."""
    named = [each.checkpoint.id for each in answer.candidates]
    named += [each.checkpoint.id for each in answer.excluded]
    named += [answer.last_known_good.id] if answer.last_known_good else []
    named += [answer.served.checkpoint.id] if answer.served else []
    named += [each.checkpoint.id for each in answer.onset.points] if answer.onset else []
    named += [answer.spike.rewind_to.id] if answer.spike and answer.spike.rewind_to else []
    return named


def _more(fields: dict[str, str], answer: RollbackAnswer) -> Link | None:
    """The same question with more candidates, where there may be some."""
    if fields["more"] or len(answer.candidates) < FEW:
        return None
    return Link("Show more candidates", address("/rollback", **{**fields, "more": "1"}) + "#candidates")
