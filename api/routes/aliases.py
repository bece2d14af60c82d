"""Aliases: names that point at one committed checkpoint, with their history."""

from collections.abc import Sequence
from typing import Annotated

from sqlalchemy.orm import Session
from starlette.responses import Response

from api.access import own_project
from api.answers import answer
from api.deps import CallerDep, Cursor, Limit, SessionDep, WriterDep, WriteSessionDep, json_body
from api.paging import decode_cursor, id_after, one_page
from api.room import room
from api.schemas.aliases import AliasIn, AliasOut, AliasPage, AliasRollbackIn, MoveOut, MovePage
from registry import aliases
from registry.checkpoints.detail import read_identities
from registry.keyset import InvalidCursor
from registry.types import INT64_MAX

router = room("aliases")


@router.get("/aliases", response_model=AliasPage)
def list_aliases(session: SessionDep, caller: CallerDep, limit: Limit = 50, cursor: Cursor = None) -> Response:
    """Every alias that the caller may see, by name."""
    query = ("aliases", caller.token_id)
    allowed = None if caller.project_ids is None else sorted(caller.project_ids)
    found = aliases.list_aliases(session, allowed, after=_after(cursor, *query), limit=limit + 1)
    rows, more = one_page(found, limit, lambda row: [row.name, row.project_id], *query)
    return answer(AliasPage.model_construct(items=_shapes(session, rows), next_cursor=more))


@router.get("/aliases/{project}/{name}", response_model=AliasOut)
def get_alias(project: str, name: str, session: SessionDep, caller: CallerDep) -> Response:
    """What an alias points at."""
    row = aliases.get_alias(session, own_project(session, project, caller).id, name)
    return answer(_shapes(session, [row])[0])


@router.put("/aliases/{project}/{name}", response_model=AliasOut)
def move_alias(
    project: str,
    name: str,
    body: Annotated[AliasIn, json_body(AliasIn)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Point an alias at a committed checkpoint; 409 where it does not point at `expected` any more.

    A suspect one (its loss is not finite, it is quarantined, attempts that loaded it failed alike) needs `force`.
    A name such as `final` of what is not the last of its run is answered with `warnings`.
    """
    row = aliases.move_alias(
        session,
        own_project(session, project, caller).id,
        name,
        body.checkpoint_id,
        actor=caller.name,
        reason=body.reason,
        expected=body.expected,
        only_new="expected" in body.model_fields_set and body.expected is None,
        force=body.force,
    )
    return answer(_shapes(session, [row])[0])


@router.get("/aliases/{project}/{name}/history", response_model=MovePage)
def alias_history(
    project: str, name: str, session: SessionDep, caller: CallerDep, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The moves of an alias, the newest first."""
    query = ("history", project, name, caller.token_id)
    own = own_project(session, project, caller)
    found = aliases.alias_history(session, own.id, name, after=id_after(cursor, *query), limit=limit + 1)
    moves, more = one_page(found, limit, lambda move: [move.id], *query)
    wanted = {move.checkpoint_id for move in moves} | {move.previous_id for move in moves if move.previous_id}
    known = read_identities(session, sorted(wanted))
    return answer(MovePage.model_construct(items=[MoveOut.from_move(move, known) for move in moves], next_cursor=more))


@router.post("/aliases/{project}/{name}/rollback", response_model=AliasOut)
def roll_back_alias(
    project: str,
    name: str,
    body: Annotated[AliasRollbackIn, json_body(AliasRollbackIn, optional=True)],
    session: WriteSessionDep,
    caller: WriterDep,
) -> Response:
    """Point an alias back at what it pointed at before; a second call goes back one step further in its history.

    PUT undoes a rollback.
    """
    own = own_project(session, project, caller)
    row = aliases.roll_back_alias(
        session,
        own.id,
        name,
        actor=caller.name,
        reason=body.reason,
        expected=body.expected,
        force=body.force,
    )
    return answer(_shapes(session, [row])[0])


def _after(cursor: str | None, *query: str | int | None) -> tuple[str, int] | None:
    match decode_cursor(cursor, *query) if cursor is not None else None:
        case None:
            return None
        case [str(name), int(project_id)] if 0 <= project_id <= INT64_MAX:
            return name, project_id
    raise InvalidCursor("The cursor does not belong to a list of aliases. Start again without one.")


def _shapes(session: Session, rows: Sequence[aliases.AliasRow]) -> list[AliasOut]:
    known = read_identities(session, [row.checkpoint_id for row in rows])
    behind = aliases.not_the_last(session, rows)
    return [AliasOut.from_row(row, known[row.checkpoint_id], behind.get((row.project_id, row.name))) for row in rows]
