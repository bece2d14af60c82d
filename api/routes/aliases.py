"""Aliases: names that point at one committed checkpoint, with their history."""

from typing import Annotated

from fastapi import APIRouter
from sqlalchemy.orm import Session
from starlette.responses import Response

from api.answers import answer
from api.deps import CallerDep, SessionDep, WriterDep, WriteSessionDep, json_body
from api.schemas.aliases import AliasIn, AliasOut, AliasPage, AliasRollbackIn, MoveOut, MovePage
from registry import aliases
from registry.checkpoints.detail import read_identities
from registry.projects import ProjectRow, find_project
from registry.tokens import Caller

router = APIRouter(tags=["aliases"])


@router.get("/aliases", response_model=AliasPage)
def list_aliases(session: SessionDep, caller: CallerDep) -> Response:
    """Every alias that the caller may see, by name."""
    rows = aliases.list_aliases(session, None if caller.project_ids is None else sorted(caller.project_ids))
    known = read_identities(session, [row.checkpoint_id for row in rows])
    items = [AliasOut.from_row(row, known[row.checkpoint_id]) for row in rows]
    return answer(AliasPage.model_construct(items=items, next_cursor=None))


@router.get("/aliases/{project}/{name}", response_model=AliasOut)
def get_alias(project: str, name: str, session: SessionDep, caller: CallerDep) -> Response:
    """What an alias points at."""
    row = aliases.get_alias(session, _own(session, project, caller).id, name)
    return answer(_shape(session, row))


@router.put("/aliases/{project}/{name}", response_model=AliasOut)
def move_alias(
    project: str,
    name: str,
    body: Annotated[AliasIn, json_body(AliasIn)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Point an alias at a committed checkpoint; 409 where it does not point at `expected` any more."""
    row = aliases.move_alias(
        session,
        _own(session, project, caller).id,
        name,
        body.checkpoint_id,
        actor=caller.name,
        reason=body.reason,
        expected=body.expected,
    )
    return answer(_shape(session, row))


@router.get("/aliases/{project}/{name}/history", response_model=MovePage)
def alias_history(project: str, name: str, session: SessionDep, caller: CallerDep) -> Response:
    """The moves of an alias, the newest first."""
    moves = aliases.alias_history(session, _own(session, project, caller).id, name)
    wanted = {move.checkpoint_id for move in moves} | {move.previous_id for move in moves if move.previous_id}
    known = read_identities(session, sorted(wanted))
    return answer(MovePage.model_construct(items=[MoveOut.from_move(move, known) for move in moves], next_cursor=None))


@router.post("/aliases/{project}/{name}/rollback", response_model=AliasOut)
def roll_back_alias(
    project: str,
    name: str,
    body: Annotated[AliasRollbackIn, json_body(AliasRollbackIn, optional=True)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Point an alias back at what it pointed at before its last move."""
    own = _own(session, project, caller)
    row = aliases.roll_back_alias(session, own.id, name, actor=caller.name, reason=body.reason)
    return answer(_shape(session, row))


def _own(session: Session, project: str, caller: Caller) -> ProjectRow:
    row = find_project(session, project)
    caller.require_project(row.id)
    return row


def _shape(session: Session, row: aliases.AliasRow) -> AliasOut:
    return AliasOut.from_row(row, read_identities(session, [row.checkpoint_id])[row.checkpoint_id])
