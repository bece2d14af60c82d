"""Aliases: what each name points at, and moving one with its consequence said first."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.aliases import AliasMoved, AliasNotFound, Move, alias_history, get_alias, list_aliases, move_alias
from registry.errors import RegistryError
from registry.ids import from_text
from registry.overview.briefs import Brief, read_briefs
from registry.projects import ProjectRow, find_project, list_projects
from registry.tokens import Caller
from registry.types import Resumability, Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.commands import first_alias
from ui.contexts import AliasContext, AliasesContext, AliasMoveRow, AliasRow, Answer
from ui.links import address, segment
from ui.refs import ref_of
from ui.respond import Viewer, go_to, show

router = APIRouter(include_in_schema=False)


def alias_path(project: str, name: str) -> str:
    return f"/aliases/{segment(project)}/{segment(name)}"


@router.get("/aliases")
def aliases_page(request: Request, session: SessionDep, viewer: ViewerDep) -> HTMLResponse:
    """Every alias of the projects that the viewer may see."""
    caller = viewer.caller
    found = list_aliases(session, None if caller.project_ids is None else sorted(caller.project_ids))
    projects = {row.id: row.name for row in list_projects(session, caller.project_ids)}
    briefs = read_briefs(session, [alias.checkpoint_id for alias in found])
    rows = []
    for alias in sorted(found, key=lambda alias: (projects[alias.project_id], alias.name)):
        last = alias_history(session, alias.project_id, alias.name, limit=1)[0]
        project = projects[alias.project_id]
        target = ref_of(briefs[alias.checkpoint_id])
        path = alias_path(project, alias.name)
        rows.append(AliasRow(project, alias.name, path, target, alias.moved_at, last.moved_by, last.reason))
    empty = () if rows else (first_alias(request),)
    answer = Answer(f"{filters.plural(len(rows), 'alias', 'aliases')}." if rows else "No alias points anywhere yet.")
    return show(
        "aliases.html", AliasesContext(answer, tuple(rows), empty), title="Aliases", section="Aliases", viewer=viewer
    )


@router.get("/aliases/{project}/{name}")
def alias_page(
    project: str, name: str, session: SessionDep, viewer: ViewerDep, to: str = "", moved: str = ""
) -> HTMLResponse:
    """One alias with its history; `to` shows what a move there would do before anything is done."""
    row = find_project(session, project)
    viewer.caller.require_project(row.id)
    return _show(session, viewer, row, name, to=to, notice="Moved. The move can be undone below." if moved else "")


@router.post("/aliases/{project}/{name}")
def move(
    project: str,
    name: str,
    session: WriteSessionDep,
    viewer: FormViewerDep,
    to: Annotated[str, Form()] = "",
    expected: Annotated[str, Form()] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Move the alias if it still points at `expected`: somebody may have moved it since the page was read."""
    row = find_project(session, project)
    viewer.caller.require_project(row.id)
    viewer.caller.require(Scope.WRITE)
    try:
        move_alias(
            session,
            row.id,
            name,
            from_text(to) or 0,
            actor=viewer.caller.name,
            reason=reason.strip() or None,
            expected=from_text(expected) if expected else None,
        )
    except AliasMoved as error:
        return _show(session, viewer, row, name, to=to, problem=error.message, status=409)
    return go_to(address(alias_path(project, name), moved="1"))


def _show(
    session: Session,
    viewer: Viewer,
    project: ProjectRow,
    name: str,
    *,
    to: str = "",
    notice: str = "",
    problem: str = "",
    status: int = 200,
) -> HTMLResponse:
    try:
        current_id = get_alias(session, project.id, name).checkpoint_id
        history = alias_history(session, project.id, name)
    except AliasNotFound:
        if not to:
            raise
        current_id, history = 0, []
    proposed_id = from_text(to.strip()) or 0
    ids = {
        current_id,
        proposed_id,
        *(move.checkpoint_id for move in history),
        *(move.previous_id or 0 for move in history),
    }
    briefs = read_briefs(session, ids - {0})
    proposed = briefs.get(proposed_id)
    if to and (proposed is None or proposed.project_id != project.id):
        proposed, problem = None, problem or f"{project.name} has no checkpoint ‘{to[:40]}’."
    current = briefs.get(current_id)
    back_to = briefs.get(history[0].previous_id or 0) if history else None
    context = AliasContext(
        project=project.name,
        name=name,
        answer=_answer(project.name, name, current),
        current=ref_of(current) if current else None,
        proposed=ref_of(proposed) if proposed else None,
        consequence=_consequence(project.name, name, current, proposed) if proposed else "",
        back_to=ref_of(back_to) if back_to else None,
        history=tuple(_history_row(move, briefs, at == 0) for at, move in enumerate(history)),
        typed="" if proposed else to[:40],
        problem=problem,
        may_move=_may_write(viewer.caller),
        notice=notice,
    )
    return show("alias.html", context, title=f"{project.name}/{name}", section="Aliases", viewer=viewer, status=status)


def _may_write(caller: Caller) -> bool:
    try:
        caller.require(Scope.WRITE)
    except RegistryError:
        return False
    return True


def _answer(project: str, name: str, current: Brief | None) -> Answer:
    if current is None:
        return Answer(f"{project}/{name} does not exist yet; the first move makes it.", "unknown")
    tone, state = "plain", ""
    if current.state != "committed":
        tone, state = "bad", f", which is {current.state}"
    elif current.superseded:
        tone, state = "warn", ", which a newer attempt of that run has superseded"
    return Answer(
        f"{project}/{name} points at step {filters.grouped(current.step)} of "
        f"{filters.middle(current.run_name, 60)}{state}.",
        tone,
    )


def _consequence(project: str, name: str, current: Brief | None, proposed: Brief) -> str:
    """In numbers, what the move changes for whoever loads the alias."""
    step = filters.grouped(proposed.step)
    parts = [f"What loads {project}/{name} from now on gets step {step} of {filters.middle(proposed.run_name, 60)}"]
    if current is not None and current.run_id == proposed.run_id and current.step != proposed.step:
        distance = filters.grouped(abs(current.step - proposed.step))
        parts.append(f", {distance} steps {'earlier' if proposed.step < current.step else 'later'} than now")
    elif current is not None and current.run_id != proposed.run_id:
        parts.append(", another run than now")
    parts.append(". ")
    if proposed.resumability is Resumability.UNKNOWN or not proposed.copies.uri:
        parts.append("Nothing proves that its files are there. ")
    parts.append("Nothing is deleted, and the move can be undone here.")
    return "".join(parts)


def _history_row(move: Move, briefs: dict[int, Brief], current: bool) -> AliasMoveRow:
    target = briefs.get(move.checkpoint_id)
    return AliasMoveRow(ref_of(target) if target else None, move.moved_at, move.moved_by, move.reason, current)
