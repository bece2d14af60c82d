"""The benchmark table of a project: what needs mapping first, then what looks wrong, then everything."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

from fastapi import APIRouter, Form, Request
from fastapi.responses import HTMLResponse, Response
from sqlalchemy.orm import Session

from api.deps import SessionDep, WriteSessionDep
from registry.evals.table.editing import InvalidBenchmark, put_benchmark
from registry.evals.table.listing import list_benchmarks
from registry.overview.starts import newest_evaluated
from registry.projects import ProjectRow, find_project, list_projects
from registry.tokens import Caller
from registry.types import Scope
from ui.access import FormViewerDep, ViewerDep
from ui.benchmarks.form import read_form, show_form
from ui.benchmarks.listing import answer_of, no_project, row_of
from ui.commands import first_steps
from ui.contexts import Link
from ui.contexts.benchmarks import BenchmarksContext
from ui.links import address
from ui.respond import go_to, show

router = APIRouter(include_in_schema=False)

ROWS: Final = 100


@router.get("/benchmarks")
def benchmarks_page(
    request: Request,
    session: SessionDep,
    viewer: ViewerDep,
    project: str = "",
    only: str = "occurring",
    after: str = "",
) -> HTMLResponse:
    """The table of one project, by default of that with the newest results and of what these have.

    `only=all` shows the shipped table with it.
    """
    projects = list_projects(session, viewer.caller.project_ids)
    if not project and not projects:
        page = replace(no_project(), empty=first_steps(request))
        return show("benchmarks.html", page, title="Benchmarks", section="Benchmarks", viewer=viewer)
    row = _project(session, viewer.caller, project or _begin_with(session, projects))
    only = only if only in ("all", "occurring") else "occurring"
    found = list_benchmarks(session, row.id, after=after or None, limit=ROWS + 1, only=only)
    unmapped = list_benchmarks(session, row.id, limit=ROWS, only="unmapped")
    page = BenchmarksContext(
        project=row.name,
        projects=tuple(
            Link(each.name, address("/benchmarks", project=each.name, only=only), each.id == row.id)
            for each in projects
        )
        if len(projects) > 1
        else (),
        answer=answer_of(found, unmapped),
        unmapped=tuple(row_of(each, row.name) for each in unmapped),
        flagged=tuple(row_of(each, row.name) for each in found[:ROWS] if each.flags),
        rows=tuple(row_of(each, row.name) for each in found[:ROWS]),
        choices=tuple(
            Link(text, address("/benchmarks", project=row.name, only=name), name == only)
            for name, text in (("occurring", "with results here"), ("all", "all that are known"))
        ),
        older=address("/benchmarks", project=row.name, only=only, after=found[ROWS - 1].name)
        if len(found) > ROWS
        else None,
    )
    return show("benchmarks.html", page, title="Benchmarks", section="Benchmarks", viewer=viewer)


@router.get("/benchmarks/edit")
def benchmark_page(
    session: SessionDep,
    viewer: ViewerDep,
    project: str,
    name: str,
    saved: str = "",
    same_as: str = "",
    capability: str = "",
    scale: str = "",
) -> HTMLResponse:
    """One benchmark with what the project says of it. A proposal fills the form in; saving it is up to the reader."""
    row = _project(session, viewer.caller, project)
    proposed = {
        name: text for name, text in (("same_as", same_as), ("capability", capability), ("scale", scale)) if text
    }
    notice = "Saved. It counts from the next answer on, everywhere." if saved else ""
    if proposed and not saved:
        notice = "Filled in with the proposal: nothing is changed before you save it."
    return show_form(session, viewer, row, name, typed=proposed, notice=notice)


@router.post("/benchmarks/edit")
def save_benchmark(
    session: WriteSessionDep,
    viewer: FormViewerDep,
    project: str,
    name: str,
    capability: Annotated[str, Form(max_length=200)] = "",
    direction: Annotated[str, Form(max_length=200)] = "",
    scale: Annotated[str, Form(max_length=200)] = "",
    chance: Annotated[str, Form(max_length=200)] = "",
    sample_count: Annotated[str, Form(max_length=200)] = "",
    preferred_metrics: Annotated[str, Form(max_length=2_000)] = "",
    same_as: Annotated[str, Form(max_length=512)] = "",
    aliases: Annotated[str, Form(max_length=4_000)] = "",
    note: Annotated[str, Form(max_length=4_000)] = "",
) -> Response:
    """Say all of the form: what is empty, the shipped table says again."""
    row = _project(session, viewer.caller, project)
    viewer.caller.require(Scope.WRITE)
    typed = {
        "capability": capability,
        "direction": direction,
        "scale": scale,
        "chance": chance,
        "sample_count": sample_count,
        "preferred_metrics": preferred_metrics,
        "same_as": same_as,
        "aliases": aliases,
        "note": note,
    }
    try:
        put_benchmark(session, row.id, name, read_form(typed), actor=viewer.caller.name)
    except InvalidBenchmark as error:
        session.rollback()
        return show_form(session, viewer, row, name, typed=typed, errors=error.errors, status=422)
    return go_to(address("/benchmarks/edit", project=row.name, name=name, saved="1"))


def _begin_with(session: Session, projects: Sequence[ProjectRow]) -> str:
    """The project with the newest results; where none has any, the first by name."""
    newest = newest_evaluated(session, [each.id for each in projects])
    return next((each.name for each in projects if each.id == newest), projects[0].name)


def _project(session: Session, caller: Caller, name: str) -> ProjectRow:
    row = find_project(session, name)
    caller.require_project(row.id)
    return row
