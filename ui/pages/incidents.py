"""Interruptions: how many, what they cost, what caused them; and each one with the end of its log."""

from typing import Annotated

from fastapi import APIRouter, Form, Query
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.db import now, to_micros
from registry.errors import RegistryError
from registry.ids import from_text, to_text
from registry.incidents.causes import cause_of
from registry.incidents.ledger import amend_incident
from registry.incidents.queries import Asked, count_by_cause, get_incident, list_incidents, summarise
from registry.incidents.shapes import IncidentNotFound, IncidentRow
from registry.incidents.suspicion import advise, suspect_copies_of, suspects_of
from registry.overview.briefs import read_briefs
from registry.projects import find_project
from registry.runs import RunBrief, RunNotFound, get_brief
from registry.tokens import Caller
from registry.types import Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.contexts import Command, Link
from ui.csv_files import csv_file
from ui.incident_views import IncidentsContext, cause_lines, incident_context, line_of, sentence
from ui.links import changed, from_cursor, to_cursor
from ui.respond import Viewer, go_to, show

router = APIRouter(include_in_schema=False)

ROWS = 50
STATES = (("", "all"), ("open", "open"), ("closed", "closed"))
HOW_TO = Command(
    "Interruptions are recorded by themselves where a job runs under the supervisor:",
    "cairn exec --run PROJECT/RUN --retries 3 -- torchrun train.py",
)


@router.get("/incidents")
def incidents_page(
    session: SessionDep,
    viewer: ViewerDep,
    project: str = "",
    run: str = "",
    state: str = "",
    cause: str = "",
    after: str = "",
) -> HTMLResponse:
    """Of all the runs that the viewer may see, of a project, or of one run; the newest first."""
    asked, brief, notices = _asked(session, viewer.caller, project, run, state, cause)
    here = {"project": project, "run": run, "state": state, "cause": cause}
    moment = now()
    rows = list_incidents(session, asked, after_values=from_cursor(after), limit=ROWS + 1)
    newest = rows if not after else list_incidents(session, asked, limit=1)
    page, more = rows[:ROWS], len(rows) > ROWS
    every_cause = Asked(asked.project_ids, asked.run_id, asked.open)
    counts = count_by_cause(session, every_cause)
    summary = summarise(session, asked)
    taken_out = [("project", project), ("run", brief.name if brief else ""), ("cause", cause and cause_of(cause).title)]
    place = [to_micros(page[-1].occurred_at), page[-1].id] if more else None
    context = IncidentsContext(
        answer=sentence(summary, newest[0] if newest else None, moment),
        rows=tuple(line_of(row) for row in page),
        causes=cause_lines(counts, {each.cause: changed("/incidents", here, cause=each.cause) for each in counts}),
        states=tuple(Link(text, changed("/incidents", here, state=name), state == name) for name, text in STATES),
        chosen=tuple(
            Link(f"{name} {filters.middle(text, 40)}", changed("/incidents", here, **{name: None}))
            for name, text in taken_out
            if text
        ),
        csv_href=changed("/incidents.csv", here),
        newer=changed("/incidents", here) if after else None,
        older=changed("/incidents", here, after=to_cursor(place)) if place else None,
        empty=() if summary.count else (HOW_TO,),
    )
    return show(
        "incidents.html", context, title="Interruptions", section="Interruptions", viewer=viewer, notices=notices
    )


@router.get("/incidents.csv")
def incidents_csv(
    session: SessionDep,
    viewer: ViewerDep,
    project: str = "",
    run: str = "",
    state: str = "",
    cause: str = "",
    limit: Annotated[int, Query(ge=1, le=100_000)] = 100_000,
) -> StreamingResponse:
    """Every row of the table, times in UTC and durations in seconds."""
    asked, _, _ = _asked(session, viewer.caller, project, run, state, cause)
    header = (
        *("incident", "project", "run", "attempt", "occurred_at", "kind", "cause", "node", "hardware", "exit_code"),
        *("signal", "last_step", "steps_lost", "recovered_at", "recovery_seconds", "note"),
    )
    rows = (
        (
            *(to_text(row.id), row.project, row.run, row.attempt, row.occurred_at, row.kind, row.cause, row.node),
            *(row.hardware, row.exit_code, row.signal, row.last_step, row.steps_lost, row.recovered_at),
            *(row.recovery_seconds, row.note),
        )
        for row in list_incidents(session, asked, limit=limit)
    )
    return csv_file("incidents", header, rows)


@router.get("/incidents/{incident_id}")
def incident_page(incident_id: str, session: SessionDep, viewer: ViewerDep, done: str = "") -> HTMLResponse:
    """One interruption: what it was, what it cost, the lines that say so, what had been loaded."""
    row = _own(session, viewer.caller, incident_id)
    return _show(session, viewer, row, notice="Saved." if done else "")


@router.post("/incidents/{incident_id}")
def amend(
    incident_id: str,
    session: WriteSessionDep,
    viewer: FormViewerDep,
    cause: Annotated[str, Form(max_length=64, pattern=r"^[a-z0-9](-?[a-z0-9])*$")] = "unknown",
    note: Annotated[str, Form(max_length=4_000)] = "",
    close: Annotated[str, Form()] = "",
) -> Response:
    """Name the cause, leave a note, close it or open it again."""
    row = _own(session, viewer.caller, incident_id)
    viewer.caller.require(Scope.WRITE)
    changes: dict[str, object] = {}
    if cause != row.cause:
        changes["cause"] = None if cause == "unknown" else cause
    if (note.strip() or None) != row.note:
        changes["note"] = note.strip().replace("\0", "") or None
    if close:
        changes["closed_at"] = None if row.closed_at is not None else now()
    if changes:
        amend_incident(session, row.id, changes, actor=viewer.caller.name)
    return go_to(f"/incidents/{to_text(row.id)}?done=1")


def _asked(
    session: Session, caller: Caller, project: str, run: str, state: str, cause: str
) -> tuple[Asked, RunBrief | None, list[str]]:
    """The question, the run that it is about, and what of the address was not understood."""
    projects = caller.project_ids
    if project:
        own = find_project(session, project)
        caller.require_project(own.id)
        projects = frozenset({own.id})
    brief = None
    if run:
        number = from_text(run)
        if number is None:
            raise RunNotFound(f"There is no run {run[:40]!r}. The list of runs has those that exist.")
        brief = get_brief(session, number)
        caller.require_project(brief.project_id)
        projects = frozenset({brief.project_id})
    known = {"": None, "open": True, "closed": False}
    notices = [] if state in known else [f"‘{filters.middle(state, 40)}’ is no state: open or closed."]
    asked = Asked(projects, brief.id if brief else None, known.get(state), _storable(cause))
    return asked, brief, notices


def _storable(text: str) -> str | None:
    """A text that the database can be asked for; what it cannot hold is nobody's cause."""
    return text.replace("\0", "\N{SYMBOL FOR NULL}") or None


def _own(session: Session, caller: Caller, incident_id: str) -> IncidentRow:
    number = from_text(incident_id)
    if number is None:
        raise IncidentNotFound(f"There is no interruption {incident_id[:40]!r}. Their list has those that exist.")
    row = get_incident(session, number)
    caller.require_project(row.project_id)
    return row


def _show(session: Session, viewer: Viewer, row: IncidentRow, notice: str = "") -> HTMLResponse:
    loaded = read_briefs(session, [row.checkpoint_id]).get(row.checkpoint_id) if row.checkpoint_id else None
    context = incident_context(row, loaded, _suspect(session, row), may_write=_may_write(viewer.caller), notice=notice)
    return show("incident.html", context, title="Interruption", section="Interruptions", viewer=viewer)


def _suspect(session: Session, row: IncidentRow) -> str:
    """Why the checkpoint that was loaded is suspect, and what to load instead; '' where it is not."""
    if row.checkpoint_id is None:
        return ""
    found = suspects_of(session, [row.checkpoint_id]).get(row.checkpoint_id)
    if found is None and row.replica_id is not None:
        found = suspect_copies_of(session, [row.checkpoint_id]).get(row.replica_id)
    if found is None:
        return ""
    instead = advise(session, found)
    what = "The copy that was loaded" if found.replica_id is not None else "The checkpoint that was loaded"
    told = instead.sentence if instead is not None else "There is no older one to go back to."
    return f"{what} is suspect: {found.reason}. {told}"


def _may_write(caller: Caller) -> bool:
    try:
        caller.require(Scope.WRITE)
    except RegistryError:
        return False
    return True
