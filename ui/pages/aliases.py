"""Aliases: what each name points at, and moving one with its consequence said first."""

from typing import Annotated

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.aliases import (
    AliasMoved,
    AliasNotFound,
    ForceWithoutReason,
    Move,
    SuspectTarget,
    alias_history,
    get_alias,
    list_aliases,
    move_alias,
    not_the_last,
    roll_back_alias,
    rollback_target,
)
from registry.aliases.named import find_named_checkpoint
from registry.errors import Conflict, RegistryError
from registry.evals.project_table import read_project_table
from registry.ids import from_text, to_text
from registry.overview.briefs import Brief, read_briefs
from registry.projects import ProjectRow, find_project, list_projects
from registry.provenance.compare import score_changes
from registry.tokens import Caller
from registry.types import Resumability, Scope
from ui import filters
from ui.access import FormViewerDep, ViewerDep
from ui.commands import first_alias
from ui.compare.answer import scores_answer
from ui.compare.scores import capability_row, reach_of
from ui.contexts import Answer
from ui.contexts.aliases import AliasContext, AliasesContext, AliasMoveRow, AliasRow
from ui.links import address, segment
from ui.refs import ref_of
from ui.respond import Viewer, go_to, show

router = APIRouter(include_in_schema=False)

_SUSPECT = "Rank others, or say why it is right all the same, tick the box, and move it."


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
    project: str, name: str, session: SessionDep, viewer: ViewerDep, to: str = "", moved: str = "", back: str = ""
) -> HTMLResponse:
    """One alias with its history; `to` shows what a move there would do before anything is done.

    `back`: the move is a step back in the history.
    """
    row = find_project(session, project)
    viewer.caller.require_project(row.id)
    to = _as_id(session, viewer, to.strip())
    return _show(
        session,
        viewer,
        row,
        name,
        to=to,
        notice="Moved. The move can be undone below." if moved else "",
        back=bool(back),
    )


@router.post("/aliases/{project}/{name}")
def move(
    project: str,
    name: str,
    session: WriteSessionDep,
    viewer: FormViewerDep,
    to: Annotated[str, Form()] = "",
    expected: Annotated[str, Form()] = "",
    reason: Annotated[str, Form(max_length=500)] = "",
    back: Annotated[str, Form()] = "",
    force: Annotated[str, Form()] = "",
) -> Response:
    """Move the alias if it still points at `expected`: somebody may have moved it since the page was read.

    `back`: it is a step back in its history, after which the next step goes further back. A suspect checkpoint needs
    `force` and a reason.
    """
    row = find_project(session, project)
    viewer.caller.require_project(row.id)
    viewer.caller.require(Scope.WRITE)
    to = _as_id(session, viewer, to.strip())
    actor, why, held = viewer.caller.name, reason.strip() or None, from_text(expected) if expected else None
    try:
        if back and rollback_target(session, row.id, name) == from_text(to):
            roll_back_alias(session, row.id, name, actor=actor, reason=why, expected=held, force=bool(force))
        else:
            target = from_text(to) or 0
            move_alias(session, row.id, name, target, actor=actor, reason=why, expected=held, force=bool(force))
    except (AliasMoved, SuspectTarget, ForceWithoutReason) as error:
        suspect = isinstance(error, SuspectTarget | ForceWithoutReason)
        status = 409 if isinstance(error, Conflict) else 422
        said = _SUSPECT if suspect else error.message
        if isinstance(error, SuspectTarget):
            said = f"{error.message.partition('. ')[0]}. {_SUSPECT}"
        return _show(session, viewer, row, name, to=to, problem=said, status=status, back=bool(back), may_force=suspect)
    return go_to(address(alias_path(project, name), moved="1"))


def _as_id(session: Session, viewer: Viewer, text: str) -> str:
    """The id of what is named in one of the forms of the command line; any other text as it is."""
    try:
        return to_text(find_named_checkpoint(session, viewer.caller, text)) if "/" in text else text
    except RegistryError:  # said with what is shown of it
        return text


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
    back: bool = False,
    may_force: bool = False,
) -> HTMLResponse:
    try:
        row = get_alias(session, project.id, name)
        current_id, behind = row.checkpoint_id, not_the_last(session, [row]).get((project.id, name), "")
        history = alias_history(session, project.id, name)
        back_id = rollback_target(session, project.id, name) or 0
    except AliasNotFound:
        if not to:
            raise
        current_id, behind, history, back_id = 0, "", [], 0
    proposed_id = from_text(to.strip()) or 0
    ids = {
        current_id,
        proposed_id,
        back_id,
        *(move.checkpoint_id for move in history),
        *(move.previous_id or 0 for move in history),
    }
    briefs = read_briefs(session, ids - {0})
    proposed = briefs.get(proposed_id)
    if to and (proposed is None or proposed.project_id != project.id):
        proposed, problem = None, problem or f"{project.name} has no checkpoint ‘{to[:40]}’."
    current = briefs.get(current_id)
    back_to = briefs.get(back_id)
    changes = (
        score_changes(session, current.id, proposed.id) if current and proposed and current.id != proposed.id else None
    )
    table = read_project_table(session, [project.id])
    rows = tuple(capability_row(each, table) for each in changes.capabilities) if changes else ()
    context = AliasContext(
        project=project.name,
        name=name,
        answer=_answer(project.name, name, current, behind),
        current=ref_of(current) if current else None,
        proposed=ref_of(proposed) if proposed else None,
        consequence=_consequence(project.name, name, current, proposed) if proposed else "",
        scores=scores_answer(changes) if changes else None,
        capabilities=rows,
        reach=reach_of(rows),
        compare_href=address("/compare", baseline=to_text(current_id), candidate=to_text(proposed_id))
        if changes
        else "",
        back_to=ref_of(back_to) if back_to else None,
        going_back=back and back_id == proposed_id != 0,
        may_force=may_force,
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


def _answer(project: str, name: str, current: Brief | None, behind: str) -> Answer:
    if current is None:
        return Answer(f"{project}/{name} does not exist yet; the first move makes it.", "unknown")
    tone, state = "plain", ""
    if current.state != "committed":
        tone, state = "bad", f", which is {current.state}"
    elif current.superseded:
        tone, state = "warn", ", which a newer attempt of that run has superseded"
    elif behind:
        tone, state = "warn", f": {behind}"
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
        distance = filters.plural(abs(current.step - proposed.step), "step")
        parts.append(f", {distance} {'earlier' if proposed.step < current.step else 'later'} than now")
    elif current is not None and current.run_id != proposed.run_id:
        parts.append(", another run than now")
    parts.append(". ")
    if proposed.superseded:
        parts.append("A newer attempt of that run went back to before it. ")
    if proposed.resumability is Resumability.UNKNOWN or not proposed.copies.uri:
        parts.append("Nothing proves that its files are there. ")
    parts.append("Nothing is deleted, and the move can be undone here.")
    return "".join(parts)


def _history_row(move: Move, briefs: dict[int, Brief], current: bool) -> AliasMoveRow:
    target = briefs.get(move.checkpoint_id)
    ref = ref_of(target) if target else None
    return AliasMoveRow(ref, move.moved_at, move.moved_by, move.reason, current, move.is_rollback)
