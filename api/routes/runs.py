"""Projects, runs, their attempts and curves."""

from typing import Annotated

from fastapi import Path, Query
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import CREATED, answer, created
from api.deps import AnyLimit, CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep, json_body
from api.paging import id_after, one_page, part_of, text_after
from api.room import room
from api.schemas.common import NO_NUL
from api.schemas.runs import (
    AttemptIn,
    AttemptOut,
    AttemptPage,
    AttemptPatch,
    CurveOut,
    CurvePage,
    ListedAttempt,
    PointsIn,
    ProjectIn,
    ProjectOut,
    ProjectPage,
    RunIn,
    RunItem,
    RunOut,
    RunPage,
    SeriesIn,
    SeriesReport,
)
from registry import attempts, ids, projects, runs, series
from registry.checkpoints.detail import read_config
from registry.incidents.receipts import confirmations
from registry.overview.attempts import progress_by_attempt
from registry.runs import RunNotFound
from registry.tokens import Caller
from registry.types import MAX_ATTEMPT

router = room("runs")

NameQuery = Annotated[str, Query(max_length=512, pattern=NO_NUL)]


@router.post("/projects", response_model=ProjectOut, responses=CREATED)
def create_project(
    body: Annotated[ProjectIn, json_body(ProjectIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Make a project. The same name again answers 200 with the same project."""
    if caller.project_ids is not None:
        return answer(ProjectOut.from_row(own_project(session, body.name, caller)))
    row, made = projects.create_project(session, body.name)
    return created(ProjectOut.from_row(row), made)


@router.get("/projects", response_model=ProjectPage)
def list_projects(session: SessionDep, caller: CallerDep, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Every project that the caller may see, by name."""
    query = ("projects", caller.token_id)
    after = text_after(cursor, *query)
    rows = projects.list_projects(session, caller.project_ids, after=after, limit=limit + 1)
    items, more = one_page(rows, limit, lambda row: [row.name], *query)
    return answer(ProjectPage.model_construct(items=[ProjectOut.from_row(row) for row in items], next_cursor=more))


@router.post("/runs", response_model=RunOut, responses=CREATED)
def start_run(body: Annotated[RunIn, json_body(RunIn)], session: WriteSessionDep, caller: WriterDep) -> Response:
    """Start a run. The same project and name again answers 200 with the same run; new tags and trackers are added.

    Spaces around a name, and how its letters are composed (Unicode NFC), make no other run.
    """
    project = own_project(session, body.project, caller)
    spec = body.to_spec()
    row, made = runs.start_run(session, project.id, spec)
    config = read_config(session, row.config_id)
    return created(RunOut.from_row(row, config, [] if made else runs.not_applied(spec, row, config)), made)


@router.get("/runs", response_model=RunPage)
def list_runs(
    session: SessionDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    project: NameQuery | None = None,
    name: NameQuery | None = None,
) -> Response:
    """Runs, the newest first; of one project, of one name."""
    wanted = caller.project_ids
    if project is not None:
        wanted = frozenset({own_project(session, project, caller).id})
    query = ("runs", project, name, caller.token_id)
    rows = runs.list_runs(
        session,
        project_ids=None if wanted is None else sorted(wanted),
        name=name,
        after=id_after(cursor, *query),
        limit=limit + 1,
    )
    items, more = one_page(rows, limit, lambda row: [row.id], *query)
    return answer(RunPage.model_construct(items=[RunItem.from_row(row) for row in items], next_cursor=more))


@router.get("/runs/{run_id}", response_model=RunOut)
def get_run(run_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """One run, with its config."""
    run = _own_run(session, run_id, caller)
    return answer(RunOut.from_row(run, read_config(session, run.config_id)))


@router.post("/runs/{run_id}/attempts", response_model=AttemptOut, responses=CREATED)
def open_attempt(
    run_id: str, body: Annotated[AttemptIn, json_body(AttemptIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Start an attempt. The same key again answers 200 with the same attempt.

    On a run that has committed checkpoints, one of `resumed_from` and `"restart": true` is needed: 409 otherwise.
    """
    run = _own_run(session, run_id, caller)
    row, made = attempts.open_attempt(session, run.id, body.to_spec())
    return created(_attempt(session, run, row), made)


@router.get("/runs/{run_id}/attempts", response_model=AttemptPage)
def list_attempts(
    run_id: str, session: SessionDep, caller: CallerDep, limit: AnyLimit = None, cursor: Cursor = None
) -> Response:
    """Every attempt of a run, in order; a page of them where a limit is given."""
    run = _own_run(session, run_id, caller)
    rows, receipts = attempts.list_attempts(session, run.id), confirmations(session, run.project_id, run.id)
    page, more = part_of(rows, limit, cursor, lambda row: [row.number], "attempts", run.id, caller.token_id)
    progress = progress_by_attempt(session, run.project_id, run.id)
    items = [ListedAttempt.from_row(row, receipts.get(row.number)).with_progress(progress[row.number]) for row in page]
    return answer(AttemptPage.model_construct(items=items, next_cursor=more))


@router.patch("/runs/{run_id}/attempts/{number}", response_model=AttemptOut)
def amend_attempt(
    run_id: str,
    number: Annotated[int, Path(ge=1, le=MAX_ATTEMPT)],
    body: Annotated[AttemptPatch, json_body(AttemptPatch)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Set state, ended_at, exit_code, heartbeat_at, step or nodes. An older heartbeat changes nothing."""
    run = _own_run(session, run_id, caller)
    return answer(_attempt(session, run, attempts.amend_attempt(session, run.id, number, body.to_changes())))


@router.post("/runs/{run_id}/series", response_model=SeriesReport)
def record_series(
    run_id: str, body: Annotated[list[PointsIn], json_body(SeriesIn)], session: WriteSessionDep, caller: WriterDep
) -> Response:
    """Record stretches of curves such as the loss. Sending one again adds nothing."""
    run = _own_run(session, run_id, caller)
    points = series.record_series(session, run.id, [each.to_points() for each in body])
    return answer(SeriesReport.model_construct(points=points))


@router.get("/runs/{run_id}/series", response_model=CurvePage)
def read_series(
    run_id: str,
    session: SessionDep,
    caller: CallerDep,
    name: Annotated[list[NameQuery] | None, Query()] = None,
    limit: AnyLimit = None,
    cursor: Cursor = None,
) -> Response:
    """The curves of a run by name and attempt: all, or those that are named; `limit` counts curves."""
    run = _own_run(session, run_id, caller)
    curves = series.read_series(session, run.project_id, run.id, name)
    query = ("series", run.id, *(name or ()), caller.token_id)
    page, more = part_of(curves, limit, cursor, lambda each: [each.name, each.attempt], *query)
    items = [
        CurveOut.model_construct(attempt=each.attempt, name=each.name, steps=each.steps, values=each.values)
        for each in page
    ]
    return answer(CurvePage.model_construct(items=items, next_cursor=more))


def _attempt(session: Session, run: runs.RunRow, row: attempts.AttemptRow) -> AttemptOut:
    receipts = confirmations(session, run.project_id, run.id) if row.resumed_from is not None else {}
    return AttemptOut.from_row(row, receipts.get(row.number))


def _own_run(session: Session, run_id: str, caller: Caller) -> runs.RunRow:
    run = runs.get_run(session, ids.id_or(run_id, RunNotFound))
    caller.require_project(run.project_id)
    return run
