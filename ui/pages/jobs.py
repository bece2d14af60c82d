"""Durable jobs: what waits, what runs, what came of it, and whether anybody does them."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.errors import RegistryError
from registry.ids import from_text, to_text
from registry.jobs.errors import JobNotFound
from registry.jobs.queue import JobRow, cancel_job, get_job, list_jobs
from registry.jobs.workers import list_workers
from registry.tokens import Caller
from registry.trackers.linking import TrackerLinkNotFound, get_link
from registry.types import Scope
from ui.access import FormViewerDep, ViewerDep
from ui.contexts import Command, Link
from ui.links import address
from ui.respond import go_to, show
from ui.tracker_views import JobsContext, job_context, job_line, jobs_answer, worker_chips

router = APIRouter(include_in_schema=False)

ROWS = 50
STATES = ("waiting", "running", "done", "failed", "cancelled")


@router.get("/jobs")
def jobs_page(
    session: SessionDep, viewer: ViewerDep, state: Annotated[str, Query(max_length=20)] = "", after: str = ""
) -> HTMLResponse:
    """The newest jobs of the projects that the viewer may see; of one state."""
    allowed = viewer.caller.project_ids
    found = list_jobs(
        session,
        project_ids=None if allowed is None else sorted(allowed),
        states=[state] if state in STATES else (),
        after=from_text(after),
        limit=ROWS + 1,
    )
    rows, workers = found[:ROWS], list_workers(session)
    context = JobsContext(
        jobs_answer(rows, workers),
        tuple(job_line(row) for row in rows),
        tuple(Link(each or "all", address("/jobs", state=each), each == state) for each in ("", *STATES)),
        worker_chips(workers[:10]),
        address("/jobs", state=state, after=to_text(rows[-1].id)) if len(found) > ROWS else None,
        address("/jobs", state=state) if after else None,
        () if rows else (Command("Import an MLflow experiment:", "cairn import mlflow --experiment NAME --uri URL"),),
    )
    return show("jobs.html", context, title="Jobs", section="Jobs", viewer=viewer)


@router.get("/jobs/{job_id}")
def job_page(job_id: str, session: SessionDep, viewer: ViewerDep) -> HTMLResponse:
    """One job: how it stands, what came of it, what it left out and why."""
    row = _own_job(session, viewer.caller, job_id)
    context = job_context(row, _may_write(viewer.caller), _run_of(session, row))
    return show("job.html", context, title=f"Job {job_id[:20]}", section="Jobs", viewer=viewer)


@router.post("/jobs/{job_id}/cancel")
def cancel(job_id: str, session: WriteSessionDep, viewer: FormViewerDep) -> Response:
    """End a job; what it did so far stays."""
    row = _own_job(session, viewer.caller, job_id)
    viewer.caller.require(Scope.WRITE)
    cancel_job(session, row.id)
    return go_to(f"/jobs/{job_id}")


def _run_of(session: Session, row: JobRow) -> Link | None:
    """The run that a job reads or tells of, where its link to a tracker still stands."""
    number = from_text(str(row.arguments.get("link", "")))
    try:
        link = get_link(session, number) if number is not None else None
    except TrackerLinkNotFound:
        return None
    if link is None or link.project_id != row.project_id:
        return None
    return Link(link.run_name, f"/runs/{to_text(link.run_id)}#trackers")


def _own_job(session: Session, caller: Caller, job_id: str) -> JobRow:
    number = from_text(job_id)
    if number is None:
        raise JobNotFound(f"There is no job {job_id[:40]!r}. The list of jobs has those that exist.")
    row = get_job(session, number)
    caller.require_project(row.project_id)
    return row


def _may_write(caller: Caller) -> bool:
    try:
        caller.require(Scope.WRITE)
    except RegistryError:
        return False
    return True
