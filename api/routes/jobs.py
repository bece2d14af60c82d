"""Durable work: what waits, what runs, what came of it, and who does it."""

from typing import Annotated

from fastapi import Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import AnyLimit, CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep
from api.paging import id_after, one_page, part_after
from api.room import room
from api.schemas.common import NO_NUL
from api.schemas.jobs import JobOut, JobPage, JobState, WorkerOut, WorkerPage
from registry import ids
from registry.jobs import queue
from registry.jobs.errors import JobNotFound
from registry.jobs.workers import list_workers
from registry.tokens import Caller

router = room("jobs")

NameQuery = Annotated[str, Query(max_length=512, pattern=NO_NUL)]


@router.get("/jobs", response_model=JobPage)
def list_jobs(
    session: SessionDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: NameQuery | None = None,
    state: Annotated[list[JobState] | None, Query()] = None,
    kind: NameQuery | None = None,
) -> Response:
    """Jobs, the newest first; of one project, of some states, of one kind."""
    wanted = caller.project_ids
    if project is not None:
        wanted = frozenset({own_project(session, project, caller).id})
    query = ("jobs", project, ",".join(state or ()), kind, caller.token_id)
    found = queue.list_jobs(
        session,
        project_ids=None if wanted is None else sorted(wanted),
        states=state or (),
        kind=kind,
        after=id_after(cursor, *query),
        limit=limit + 1,
    )
    rows, more = one_page(found, limit, lambda row: [row.id], *query)
    return answer(JobPage.model_construct(items=[JobOut.from_row(row) for row in rows], next_cursor=more))


@router.get("/jobs/{job_id}", response_model=JobOut)
def get_job(job_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """How a job stands."""
    return answer(JobOut.from_row(_own_job(session, job_id, caller)))


@router.post("/jobs/{job_id}/cancel", response_model=JobOut)
def cancel_job(job_id: str, session: WriteSessionDep, caller: WriterDep) -> Response:
    """End a job that waits or runs; what it did so far stays. 409 where it has ended already."""
    job = _own_job(session, job_id, caller)
    return answer(JobOut.from_row(queue.cancel_job(session, job.id)))


@router.get("/workers", response_model=WorkerPage, summary="List Workers")
def workers(session: SessionDep, caller: CallerDep, limit: AnyLimit = None, cursor: Cursor = None) -> Response:
    """The workers of the last day, the newest first; a page of them where a limit is given. Jobs wait where none is
    alive."""
    found = list_workers(session)
    rows, more = part_after(
        found, limit, cursor, lambda row: [-row.started_at.timestamp(), row.name], "workers", caller.token_id
    )
    return answer(WorkerPage.model_construct(items=[WorkerOut.from_row(row) for row in rows], next_cursor=more))


def _own_job(session: Session, job_id: str, caller: Caller) -> queue.JobRow:
    job = queue.get_job(session, ids.id_or(job_id, JobNotFound))
    caller.require_project(job.project_id)
    return job
