"""Drills: rehearsed restores, as evidence that a checkpoint comes back."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from api.access import own_project
from api.answers import CREATED, answer, created
from api.deps import CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep, json_body
from api.paging import id_after, one_page
from api.room import room
from api.routes.checkpoints import own_checkpoint
from api.schemas.common import NO_NUL
from api.schemas.drills import DrillIn, DrillItem, DrillOut, DrillPage
from registry import ids, runs
from registry.checkpoints import detail
from registry.recovery.drills import DrillNotFound, get_drill, list_drills, project_of_drill, record_drill
from registry.recovery.drills.queries import Asked
from registry.runs import RunNotFound

router = room("recovery")

NameQuery = Annotated[str, Query(max_length=512, pattern=NO_NUL)]
IdQuery = Annotated[str, Query(max_length=64, pattern=NO_NUL)]


@router.post("/drills", response_model=DrillOut, responses=CREATED, summary="Record Drill")
def record(body: Annotated[DrillIn, json_body(DrillIn)], session: WriteSessionDep, caller: WriterDep) -> Response:
    """Record a rehearsed restore. The same `key` and content again answers 200; other content 409 `drill-exists`.

    The losses are compared here with those that the run recorded after the checkpoint, and with its first ones: a
    drill that says it passed fails where they are off, and its `exact` is decided here. One that failed stays failed.
    """
    caller.require_project(detail.project_of(session, body.checkpoint_id))
    step = detail.read_identities(session, [body.checkpoint_id])[body.checkpoint_id].step
    row, made = record_drill(session, body.checkpoint_id, body.to_new(step), actor=caller.name)
    return created(DrillOut.from_row(row), made)


@router.get("/drills", response_model=DrillPage, summary="List Drills")
def drills(
    session: SessionDep,
    caller: CallerDep,
    limit: Limit = 50,
    cursor: Cursor = None,
    checkpoint: IdQuery | None = None,
    run: IdQuery | None = None,
    project: NameQuery | None = None,
) -> Response:
    """Drills, the last recorded first: of a checkpoint or a run (by id), of a project (by name), or all."""
    wanted = caller.project_ids
    if project is not None:
        wanted = frozenset({own_project(session, project, caller).id})
    run_id = checkpoint_id = None
    if run is not None:
        brief = runs.get_brief(session, ids.id_or(run, RunNotFound))
        caller.require_project(brief.project_id)
        run_id = brief.id
    if checkpoint is not None:
        _, checkpoint_id = own_checkpoint(session, checkpoint, caller)
    query = ("drills", project, run, checkpoint, caller.token_id)
    before = id_after(cursor, *query)
    found = list_drills(session, Asked(wanted, run_id, checkpoint_id), before_id=before, limit=limit + 1)
    rows, more = one_page(found, limit, lambda row: [row.id], *query)
    return answer(DrillPage.model_construct(items=[DrillItem.from_row(row) for row in rows], next_cursor=more))


@router.get("/drills/{drill_id}", response_model=DrillOut, summary="Get Drill")
def drill(drill_id: str, session: SessionDep, caller: CallerDep) -> Response:
    """One drill, with the losses of its steps."""
    number = ids.id_or(drill_id, DrillNotFound)
    caller.require_project(project_of_drill(session, number))
    return answer(DrillOut.from_row(get_drill(session, number)))
