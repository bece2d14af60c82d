"""Links from runs to MLflow and W&B, how projects are kept in step with them, and imports from them."""

from typing import Annotated, Any

from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import CREATED, answer, created
from api.deps import AnyLimit, CallerDep, Cursor, SessionDep, SettingsDep, WriterDep, WriteSessionDep, json_body
from api.paging import part_after
from api.room import room
from api.schemas.jobs import JobOut
from api.schemas.trackers import LinkIn, LinkOut, LinkPage, TrackerImportIn, TrackingOut, TrackingPatch
from registry import ids, runs
from registry.integrations.disagreements import read_views
from registry.integrations.hosts import require_listed
from registry.runs import RunNotFound
from registry.tokens import Caller
from registry.trackers import linking, schedule
from registry.trackers.imports import ask_for_import
from registry.trackers.linking import LinkRow, TrackerLinkNotFound
from registry.trackers.settings import change_tracking as set_tracking
from registry.trackers.settings import read_tracking

router = room("trackers")

ACCEPTED: dict[int | str, dict[str, Any]] = {202: {"description": "The job was asked for; GET it to follow it."}}


@router.post("/runs/{run_id}/trackers", response_model=LinkOut, responses=CREATED)
def link_run(
    run_id: str, body: Annotated[LinkIn, json_body(LinkIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Link a run to a tracker's. The same link again answers 200. A worker reads it soon, and its state says how."""
    run = _own_run(session, run_id, caller)
    link, made = linking.link_run(session, run.id, body.to_place(), actor=caller.name)
    return created(LinkOut.from_row(link), made)


@router.get("/runs/{run_id}/trackers", response_model=LinkPage)
def list_links(
    run_id: str, session: SessionDep, caller: CallerDep, limit: AnyLimit = None, cursor: Cursor = None
) -> Response:
    """The links of a run with their states; a page of them where a limit is given. `fields`: what each tracker says of
    the run, on every page."""
    run = _own_run(session, run_id, caller)
    links = linking.list_links(session, run.project_id, run.id)
    page, more = part_after(links, limit, cursor, lambda link: [link.id], "trackers", run.id, caller.token_id)
    return answer(LinkPage.of(page, more, read_views(session, run.project_id, run.id)))


@router.delete("/runs/{run_id}/trackers/{link_id}", status_code=204)
def unlink_run(run_id: str, link_id: str, session: WriteSessionDep, caller: WriterDep) -> Response:
    """Take a link away. What was read through it stays; nothing changes in the tracker."""
    linking.unlink_run(session, _own_link(session, run_id, link_id, caller).id, actor=caller.name)
    return Response(status_code=204)


@router.post("/runs/{run_id}/trackers/{link_id}/refresh", response_model=JobOut, status_code=202, responses=ACCEPTED)
def refresh_link(run_id: str, link_id: str, session: WriteSessionDep, caller: WriterDep) -> Response:
    """Read the tracker's run now; 202 with the job."""
    link = _own_link(session, run_id, link_id, caller)
    return answer(JobOut.from_row(linking.ask_for_refresh(session, link, actor=caller.name)), 202)


@router.get("/projects/{project}/tracking", response_model=TrackingOut)
def get_tracking(project: str, session: SessionDep, caller: CallerDep) -> Response:
    """How a project is kept in step with its trackers."""
    own = own_project(session, project, caller)
    return answer(TrackingOut.from_tracking(read_tracking(session, own.id)))


@router.patch("/projects/{project}/tracking", response_model=TrackingOut)
def change_tracking(
    project: str,
    body: Annotated[TrackingPatch, json_body(TrackingPatch)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Switch pushing to a tracker on or off, choose the score that tells the best, set how often links are read."""
    own = own_project(session, project, caller)
    tracking = set_tracking(session, own.id, body.to_changes(), actor=caller.name)
    schedule.want_pushes_of_project(session, own.id)
    return answer(TrackingOut.from_tracking(tracking))


@router.post("/imports/tracker", response_model=JobOut, status_code=202, responses=ACCEPTED)
def import_tracker(
    body: Annotated[TrackerImportIn, json_body(TrackerImportIn)],
    session: WriteSessionDep,
    settings: SettingsDep,
    caller: WriterDep,
) -> Response:
    """Import an experiment's or project's runs and checkpoints; 202 with the job. Safe to ask for again. A host that is
    not listed is refused at once."""
    own = own_project(session, body.project, caller)
    arguments = body.to_arguments()
    if arguments["uri"]:
        require_listed(arguments["uri"], settings.tracker_hosts, "/uri")
    return answer(JobOut.from_row(ask_for_import(session, own.id, arguments, actor=caller.name)), 202)


def _own_run(session: Session, run_id: str, caller: Caller) -> runs.RunBrief:
    run = runs.get_brief(session, ids.id_or(run_id, RunNotFound))
    caller.require_project(run.project_id)
    return run


def _own_link(session: Session, run_id: str, link_id: str, caller: Caller) -> LinkRow:
    run = _own_run(session, run_id, caller)
    link = linking.get_link(session, ids.id_or(link_id, TrackerLinkNotFound))
    if link.run_id != run.id:
        raise TrackerLinkNotFound(f"This run has no link {link_id[:40]!r}. GET its trackers to see its links.")
    return link
