"""Which checkpoint to go back to, and what it costs: for a run in training, or for an alias in production."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import Response, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.aliases import list_aliases
from registry.db import now
from registry.errors import FieldError, Malformed
from registry.evals.catalogue import catalogue
from registry.evals.project_table import ProjectTable, read_project_table
from registry.ids import from_text, to_text
from registry.overview.briefs import read_briefs
from registry.overview.runs import RunOverview, list_run_overviews
from registry.overview.scores import MetricName, metrics_of_run
from registry.overview.starts import TO_SERVE, TO_TRAIN, has_way_back
from registry.projects import find_project, list_projects
from registry.recovery.answers import RollbackAnswer
from registry.recovery.rollback import find_rollback_candidates
from registry.recovery.watched import NothingToWatch, Watch
from registry.runs import RunNotFound, get_run
from registry.search.conditions import Condition, to_json
from registry.search.draft import UnreadableQuery
from registry.search.names import Names
from registry.search.parser import read_query
from registry.search.query import capability_resolver
from registry.tokens import Caller
from ui import filters
from ui.access import ViewerDep, may_write
from ui.commands import first_steps
from ui.contexts import Answer, Link
from ui.contexts.rollback import RollbackContext
from ui.csv_files import csv_file
from ui.links import address, segment
from ui.respond import go_to, show
from ui.rollback_answer import rollback_context

router = APIRouter(include_in_schema=False)

MODES = ("training", "production")
# The fields as the form calls them.
NAMES = {
    "mode": "The use",
    "watch": "The watched score",
    "step": "The step",
    "rto": "The time to restore within",
    "where": "The condition",
    "after": "The day from",
    "before": "The day before",
}
FIELD_NAMES = ("run", "alias", "mode", "watch", "step", "rto", "where", "after", "before")
FEW, MORE = 5, 50  # candidates shown unasked, and with `more`
MOST_STEP = 2**63 - 1
TRIED = 20  # aliases, and runs, looked at for one with an answer


@dataclass(frozen=True)
class Asked:
    """The question as the URL has it, read; what could not be read is in `errors`, by field."""

    run_id: int | None
    alias: str | None
    project_id: int
    mode: str
    watch: Watch | None
    step: int | None
    rto_seconds: float | None
    conditions: tuple[Condition, ...]
    after: datetime | None
    before: datetime | None
    errors: dict[str, str]
    more: bool = False


class UnreadableQuestion(Malformed):
    code = "unreadable-question"
    title = "A part of the question could not be read"


def read_fields(
    run: str = "",
    alias: str = "",
    mode: str = "",
    watch: str = "",
    step: str = "",
    rto: str = "",
    where: str = "",
    after: str = "",
    before: str = "",
    more: str = "",
) -> dict[str, str]:
    """The question as the address has it."""
    return {name: text.strip()[:1000] for name, text in locals().items()}


FieldsDep = Annotated[dict[str, str], Depends(read_fields)]


@router.get("/rollback")
def rollback_page(request: Request, fields: FieldsDep, session: SessionDep, viewer: ViewerDep) -> Response:
    """Unasked, it goes on to what has an answer, with everything else that the address says."""
    if not fields["run"] and not fields["alias"]:
        said = {name: text for name, text in request.query_params.items() if name not in ("run", "alias")}
        default = _default_subject(session, viewer.caller, said)
        if default is None:
            context = RollbackContext(
                Answer("There is no run to roll back yet."), (), (), None, fields, empty=first_steps(request)
            )
            return show("rollback.html", context, title="Roll back", section="Roll back", viewer=viewer)
        return go_to(default)
    asked = _read(session, viewer.caller, fields)
    answer, errors = _ask(session, viewer.caller, asked)
    run_id = asked.run_id or _run_of(answer)
    metrics = metrics_of_run(session, asked.project_id, run_id) if run_id else []
    briefs = read_briefs(session, _named(answer))
    context = rollback_context(
        answer,
        briefs,
        fields={**fields, "mode": asked.mode},
        days={"after": _shown_day(asked.after), "before": _shown_day(asked.before)},
        errors={**asked.errors, **errors},
        subject=_subject(session, asked),
        watch_choices=_watch_choices(metrics, read_project_table(session, [asked.project_id])),
        more=_more(fields, answer),
        alias_choices=_alias_links(session, viewer.caller, asked.alias),
        run_choices=_run_links(session, viewer.caller, asked.run_id),
    )
    if not may_write(viewer.caller):
        context = replace(context, watch_form={})
    notices = _left_out(fields, context.errors)
    return show("rollback.html", context, title="Roll back", section="Roll back", viewer=viewer, notices=notices)


def question(session: Session, caller: Caller, form: Mapping[str, str]) -> dict[str, Any]:
    """The question of the page's fields in the words of the API; what could not be read is left out, as on the page."""
    asked = _read(session, caller, read_fields(**{name: form.get(name, "") for name in FIELD_NAMES}))
    watch = asked.watch and {"benchmark": asked.watch.benchmark, "capability": asked.watch.capability}
    said = {
        "run_id": None if asked.run_id is None else to_text(asked.run_id),
        "alias": asked.alias,
        "mode": asked.mode,
        "watch": watch and {name: text for name, text in watch.items() if text is not None},
        "at_or_before_step": asked.step,
        "rto_seconds": asked.rto_seconds,
        "conditions": [to_json(each) for each in asked.conditions] or None,
        "after": asked.after and asked.after.isoformat(),
        "before": asked.before and asked.before.isoformat(),
    }
    return {name: value for name, value in said.items() if value is not None}


def _left_out(fields: dict[str, str], errors: dict[str, str]) -> list[str]:
    """What of the question was not understood: the answer is to the rest of it."""
    return [
        f"{NAMES[name]} ‘{filters.middle(fields[name], 60)}’ was left out: {errors[name].rstrip('.')}."
        for name in errors
    ]


@router.get("/rollback.csv")
def rollback_csv(fields: FieldsDep, session: SessionDep, viewer: ViewerDep) -> StreamingResponse:
    """The watched score at every evaluated checkpoint of the path, on the common scale where larger is better.

    A file cannot say what was left out, so a part that is not understood is refused. Raises UnreadableQuestion.
    """
    asked = _read(session, viewer.caller, fields)
    answer, errors = _ask(session, viewer.caller, asked, every_point=True)
    refused = _left_out(fields, asked.errors | errors)
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


def _read(session: Session, caller: Caller, fields: dict[str, str]) -> Asked:
    """Raises RunNotFound, ProjectNotFound, ProjectForbidden."""
    errors: dict[str, str] = {}
    run_id, alias = None, fields["alias"] or None
    if alias is None:
        run_id = from_text(fields["run"])
        if run_id is None:
            raise RunNotFound(f"There is no run {fields['run'][:40]!r}.", errors=[FieldError("/run", "an id")])
    project_id = _project_of(session, caller, run_id, alias)
    mode = fields["mode"] if fields["mode"] in MODES else ("production" if alias else "training")
    if fields["mode"] not in ("", *MODES):
        errors["mode"] = "expected training or production"
    conditions: tuple[Condition, ...] = ()
    if fields["where"]:
        try:
            known = Names(session, [project_id], fields["where"])
            conditions = read_query(fields["where"], now=now(), known=known).conditions
        except UnreadableQuery as error:
            errors["where"] = error.message.partition(" Examples: ")[0]
    return Asked(
        run_id=run_id,
        alias=alias,
        project_id=project_id,
        mode=mode,
        watch=_watch(fields["watch"]),
        step=_whole(fields, "step", errors),
        rto_seconds=_whole(fields, "rto", errors),
        conditions=conditions,
        after=_day(fields, "after", errors),
        before=_day(fields, "before", errors),
        errors=errors,
        more=bool(fields["more"]),
    )


def _project_of(session: Session, caller: Caller, run_id: int | None, alias: str | None) -> int:
    if alias is not None:
        project = find_project(session, alias.partition("/")[0]).id
    else:
        project = get_run(session, run_id or 0).project_id
    caller.require_project(project)
    return project


def _watch(text: str) -> Watch | None:
    """A capability by its name, in English or Chinese, else a benchmark."""
    if not text:
        return None
    capability = catalogue().capability(text)
    return Watch(capability=capability.name) if capability else Watch(benchmark=text)


def _whole(fields: dict[str, str], name: str, errors: dict[str, str]) -> int | None:
    digits = re.sub(r"[\s\u202f,_]", "", fields[name])
    if not digits:
        return None
    if not digits.isascii() or not digits.isdigit() or int(digits) > MOST_STEP:
        errors[name] = "expected a whole number"
        return None
    return int(digits)


def _day(fields: dict[str, str], name: str, errors: dict[str, str]) -> datetime | None:
    if not fields[name]:
        return None
    try:
        moment = datetime.fromisoformat(fields[name])
    except ValueError:
        errors[name] = "expected a date such as 2026-11-01"
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _shown_day(moment: datetime | None) -> str:
    return moment.astimezone(UTC).date().isoformat() if moment is not None else ""


def _ask(
    session: Session, caller: Caller, asked: Asked, *, every_point: bool = False
) -> tuple[RollbackAnswer, dict[str, str]]:
    """The answer; where nothing can be watched, the one without watching, and the field's error."""

    def find(watch: Watch | None) -> RollbackAnswer:
        return find_rollback_candidates(
            session,
            run_id=asked.run_id,
            alias=asked.alias,
            mode=asked.mode,
            conditions=asked.conditions,
            after=asked.after,
            before=asked.before,
            at_or_before_step=asked.step,
            watch=watch,
            rto_seconds=asked.rto_seconds,
            limit=MORE if asked.more else FEW,
            capabilities=capability_resolver(session, [asked.project_id]),
            every_point=every_point,
        )

    try:
        return find(asked.watch), {}
    except NothingToWatch as error:
        return find(None), {"watch": error.message}


def _named(answer: RollbackAnswer) -> list[int]:
    """The ids of every checkpoint that the answer speaks of."""
    named = [each.checkpoint.id for each in answer.candidates]
    named += [each.checkpoint.id for each in answer.excluded]
    named += [answer.last_known_good.id] if answer.last_known_good else []
    named += [each.checkpoint.id for each in answer.onset.points] if answer.onset else []
    named += [answer.spike.rewind_to.id] if answer.spike and answer.spike.rewind_to else []
    return named


def _run_of(answer: RollbackAnswer) -> int | None:
    """The run of what is ranked first, or left out first: whose scores can be watched."""
    named = [each.checkpoint.run.id for each in answer.candidates]
    named += [each.checkpoint.run.id for each in answer.excluded]
    return named[0] if named else None


def _subject(session: Session, asked: Asked) -> Link:
    if asked.alias is not None:
        project, _, name = asked.alias.partition("/")
        return Link(f"the alias {asked.alias}", f"/aliases/{segment(project)}/{segment(name)}")
    run = get_run(session, asked.run_id or 0)
    return Link(f"the run {run.name}", f"/runs/{to_text(run.id)}")


def _more(fields: dict[str, str], answer: RollbackAnswer) -> Link | None:
    """The same question with more candidates, where there may be some."""
    if fields["more"] or len(answer.candidates) < FEW:
        return None
    return Link("Show more candidates", address("/rollback", **{**fields, "more": "1"}) + "#candidates")


def _watch_choices(metrics: Sequence[MetricName], table: ProjectTable) -> tuple[str, ...]:
    """The capabilities, then the benchmarks that are no part of another, that the run was evaluated on."""
    rows = [(table.for_metric(m.benchmark, m.metric, m.filter), m.benchmark) for m in metrics]
    skills = [each.name for each in catalogue().capabilities if any(row.capability == each.name for row, _ in rows)]
    benchmarks = sorted({name for row, name in rows if row.part_of is None})
    return (*skills, *benchmarks[:60])


def _alias_links(session: Session, caller: Caller, chosen: str | None) -> tuple[Link, ...]:
    names = {row.id: row.name for row in list_projects(session, caller.project_ids)}
    found = [f"{names[alias.project_id]}/{alias.name}" for alias in list_aliases(session, sorted(names))]
    return tuple(Link(name, address("/rollback", alias=name), name == chosen) for name in sorted(found)[:20])


def _run_links(session: Session, caller: Caller, chosen: int | None) -> tuple[Link, ...]:
    page = list_run_overviews(session, project_ids=caller.project_ids, limit=12)
    own = [] if chosen is None or any(run.id == chosen for run in page.rows) else [get_run(session, chosen)]
    links = [Link(filters.middle(run.name, 40), address("/rollback", run=to_text(run.id)), True) for run in own]
    return (*links, *_links_of(page.rows, chosen))


def _links_of(rows: Sequence[RunOverview], chosen: int | None) -> tuple[Link, ...]:
    return tuple(
        Link(filters.middle(run.name, 40), address("/rollback", run=to_text(run.id)), run.id == chosen)
        for run in rows
        if run.checkpoints
    )


def _default_subject(session: Session, caller: Caller, said: Mapping[str, str]) -> str | None:
    """The alias that was moved last, or the run that saved last, that has something to go back to; else the first."""
    first: str | None = None
    for name, subject, has_answer in _subjects(session, caller):
        path = address("/rollback", **{name: subject, **said})
        if has_answer:
            return path
        first = first or path
    return first


def _subjects(session: Session, caller: Caller) -> Iterator[tuple[str, str, bool]]:
    """What could be rolled back, the likeliest question first, and whether it has an answer: one statement each."""
    names = {row.id: row.name for row in list_projects(session, caller.project_ids)}
    aliases = sorted(list_aliases(session, sorted(names)), key=lambda alias: alias.moved_at, reverse=True)[:TRIED]
    targets = read_briefs(session, [alias.checkpoint_id for alias in aliases])
    for alias in aliases:
        run_id, path = targets[alias.checkpoint_id].run_id, f"{names[alias.project_id]}/{alias.name}"
        found = has_way_back(session, alias.project_id, run_id, TO_SERVE, besides=alias.checkpoint_id)
        yield "alias", path, found
    for run in list_run_overviews(session, project_ids=caller.project_ids, limit=TRIED).rows:
        if run.checkpoints:
            found = has_way_back(session, run.project_id, run.id, TO_TRAIN)
            yield "run", to_text(run.id), found
