"""The links of a run to experiment trackers: how each stands, where they disagree, and a form for one more."""

from typing import Annotated

from fastapi import APIRouter, Form
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.errors import RegistryError
from registry.ids import from_text, to_text
from registry.integrations.disagreements import read_views
from registry.runs import RunBrief, RunNotFound, get_brief
from registry.tokens import Caller
from registry.trackers.linking import (
    LinkRow,
    TrackerLinkNotFound,
    ask_for_refresh,
    get_link,
    link_run,
    list_links,
    unlink_run,
)
from registry.trackers.links import BadTrackerLink, read_link
from registry.types import Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.respond import Viewer, go_to, show
from ui.tracker_views import TrackersBlock, TrackersContext, trackers_answer, trackers_block

router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/trackers")
def trackers_page(run_id: str, session: SessionDep, viewer: ViewerDep) -> HTMLResponse:
    """Every link of the run with its state."""
    return _show(session, viewer, _own_run(session, viewer.caller, run_id), run_id)


@router.post("/runs/{run_id}/trackers")
def link(
    run_id: str,
    session: WriteSessionDep,
    viewer: FormViewerDep,
    url: Annotated[str, Form(max_length=4_096)] = "",
) -> Response:
    """Link the run; a worker reads it soon."""
    run = _own_run(session, viewer.caller, run_id)
    viewer.caller.require(Scope.WRITE)
    try:
        place = read_link(url)
    except BadTrackerLink as error:
        return _show(session, viewer, run, run_id, typed=url, problem=error.message, status=422)
    link_run(session, run.id, place, actor=viewer.caller.name)
    return go_to(f"/runs/{run_id}/trackers")


@router.post("/runs/{run_id}/trackers/{link_id}/refresh")
def refresh(run_id: str, link_id: str, session: WriteSessionDep, viewer: FormViewerDep) -> Response:
    """Read the run there now, by the job whose page is shown."""
    found = _own_link(session, viewer, run_id, link_id)
    job = ask_for_refresh(session, found, actor=viewer.caller.name)
    return go_to(f"/jobs/{to_text(job.id)}")


@router.post("/runs/{run_id}/trackers/{link_id}/remove")
def remove(run_id: str, link_id: str, session: WriteSessionDep, viewer: FormViewerDep) -> Response:
    """Take the link away; what was read through it stays."""
    unlink_run(session, _own_link(session, viewer, run_id, link_id).id, actor=viewer.caller.name)
    return go_to(f"/runs/{run_id}/trackers")


def block_of(session: Session, caller: Caller, run: RunBrief, run_id: str) -> TrackersBlock:
    """What the run's own page shows too."""
    links = list_links(session, run.project_id, run.id)
    views = read_views(session, run.project_id, run.id) if links else []
    return trackers_block(run_id, links, views, _may_write(caller))


def _show(
    session: Session,
    viewer: Viewer,
    run: RunBrief,
    run_id: str,
    *,
    typed: str = "",
    problem: str = "",
    status: int = 200,
) -> HTMLResponse:
    block = block_of(session, viewer.caller, run, run_id)
    answer = trackers_answer(list_links(session, run.project_id, run.id), block)
    context = TrackersContext(run.name, run.project, answer, block, typed, problem)
    title = f"Trackers of {filters.middle(run.name, 60)}"
    return show("trackers.html", context, title=title, section="Runs", viewer=viewer, status=status)


def _own_run(session: Session, caller: Caller, run_id: str) -> RunBrief:
    number = from_text(run_id)
    if number is None:
        raise RunNotFound(f"There is no run {run_id[:40]!r}. The list of runs has those that exist.")
    run = get_brief(session, number)
    caller.require_project(run.project_id)
    return run


def _own_link(session: Session, viewer: Viewer, run_id: str, link_id: str) -> LinkRow:
    run = _own_run(session, viewer.caller, run_id)
    viewer.caller.require(Scope.WRITE)
    found = get_link(session, from_text(link_id) or 0)
    if found.run_id != run.id:
        raise TrackerLinkNotFound(f"This run has no link {link_id[:40]!r}.")
    return found


def _may_write(caller: Caller) -> bool:
    try:
        caller.require(Scope.WRITE)
    except RegistryError:
        return False
    return True
