"""Standing watches, and what they found."""

from typing import Annotated, Literal
from urllib.parse import urlencode

from fastapi import Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import CREATED, answer, created
from api.deps import CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep, json_body
from api.paging import id_after, one_page
from api.room import room
from api.routes.runs import NameQuery
from api.schemas.watches import (
    FindingOut,
    FindingPage,
    FindingPatch,
    StandingWatchIn,
    WatchOut,
    WatchPage,
    WatchPatch,
)
from registry import runs
from registry.ids import id_or
from registry.runs import RunNotFound
from registry.tokens import Caller
from registry.watches import findings, standing

router = room("watches")

States = Annotated[list[Literal["open", "acknowledged", "withdrawn"]] | None, Query(max_length=3)]


@router.post("/watches", response_model=WatchOut, responses=CREATED)
def stand_watch(
    body: Annotated[StandingWatchIn, json_body(StandingWatchIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Watch a run or an alias from now on: each arriving score, or the loss, is tested. Again: 200, the same watch.

    What is found is a finding, seen on the pages, listed by GET /findings, and announced as `finding.opened`. A score
    raises the alarm by CUSUM (5 standard errors above a slack of .5 each) against the ten scores before it. The test
    runs right after the score is recorded, outside of its request, over everything that is there: neither the order of
    arrival nor the number of processes has a say.
    """
    if body.alias is not None:
        project_id = own_project(session, body.alias.partition("/")[0], caller).id
    else:
        project_id = runs.get_brief(session, body.run_id or 0).project_id
        caller.require_project(project_id)
    row, made = standing.stand_watch(session, project_id, body.to_spec(), actor=caller.name)
    return created(WatchOut.from_row(row), made)


@router.get("/watches", response_model=WatchPage)
def list_watches(
    session: SessionDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: NameQuery | None = None,
    run_id: str | None = None,
) -> Response:
    """Watches, the newest first; of one project, of one run."""
    query = ("watches", project, run_id, caller.token_id)
    rows = standing.list_watches(
        session,
        _projects(session, project, caller),
        run_id=None if run_id is None else id_or(run_id, RunNotFound),
        after=id_after(cursor, *query),
        limit=limit + 1,
    )
    items, more = one_page(rows, limit, lambda row: [row.id], *query)
    return answer(WatchPage.model_construct(items=[WatchOut.from_row(row) for row in items], next_cursor=more))


@router.patch("/watches/{watch_id}", response_model=WatchOut)
def amend_watch(
    watch_id: str, body: Annotated[WatchPatch, json_body(WatchPatch)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """End a watch. What it found stays; POST /watches begins it again."""
    number = id_or(watch_id, standing.WatchNotFound)
    caller.require_project(standing.get_watch(session, number).project_id)
    return answer(WatchOut.from_row(standing.end_watch(session, number, actor=caller.name)))


@router.get("/findings", response_model=FindingPage)
def list_findings(
    session: SessionDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: NameQuery | None = None,
    run_id: str | None = None,
    state: States = None,
) -> Response:
    """What watches found, the newest first; of some states, of one project, of one run."""
    query = ("findings", project, run_id, ",".join(sorted(state or ())), caller.token_id)
    rows = findings.list_findings(
        session,
        _projects(session, project, caller),
        states=state or (),
        run_ids=None if run_id is None else [id_or(run_id, RunNotFound)],
        after=id_after(cursor, *query),
        limit=limit + 1,
    )
    items, more = one_page(rows, limit, lambda row: [row.id], *query)
    return answer(FindingPage.model_construct(items=[_shape(row) for row in items], next_cursor=more))


@router.get("/findings/{finding_id}", response_model=FindingOut)
def get_finding(finding_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """One finding, with the rollback question that it opens."""
    row = findings.get_finding(session, id_or(finding_id, findings.FindingNotFound))
    caller.require_project(row.project_id)
    return answer(_shape(row))


@router.patch("/findings/{finding_id}", response_model=FindingOut)
def amend_finding(
    finding_id: str,
    body: Annotated[FindingPatch, json_body(FindingPatch)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Acknowledge a finding, with who and when, or open it again; set or take away its note."""
    number = id_or(finding_id, findings.FindingNotFound)
    caller.require_project(findings.get_finding(session, number).project_id)
    return answer(_shape(findings.amend_finding(session, number, body.to_changes(), actor=caller.name)))


def _projects(session: Session, project: str | None, caller: Caller) -> list[int] | None:
    if project is not None:
        return [own_project(session, project, caller).id]
    return None if caller.project_ids is None else sorted(caller.project_ids)


def _shape(row: findings.FindingRow) -> FindingOut:
    return FindingOut.from_row(row, f"/rollback?{urlencode(row.parameters)}")
