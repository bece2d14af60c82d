"""Every run with its newest checkpoint; of an empty registry, how to send the first one."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.db import now
from registry.ids import to_text
from registry.incidents.queries import Asked, list_incidents
from registry.overview.briefs import read_briefs
from registry.overview.run_order import count_interrupted
from registry.overview.runs import count_registry, list_run_overviews
from registry.projects import ProjectRow, find_project, list_projects
from registry.tokens import Caller
from ui import filters
from ui.access import ViewerDep
from ui.commands import first_steps
from ui.contexts import Link
from ui.contexts.runs import RunsContext
from ui.finding_lines import finding_lines
from ui.incident_views import open_line
from ui.links import address, changed, from_cursor, to_cursor
from ui.respond import show
from ui.run_list import COLUMNS, answer_of, columns_of, order_note, row_of

router = APIRouter(include_in_schema=False)


@router.get("/")
@router.get("/runs")
def runs_page(
    request: Request,
    session: SessionDep,
    viewer: ViewerDep,
    q: str = "",
    project: str = "",
    sort: str = "saved",
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> HTMLResponse:
    """Newest checkpoint first, unless another column is asked for: `sort`, with a minus the other way round."""
    known = sort.removeprefix("-") in COLUMNS
    notices = [] if known else [f"‘{filters.middle(sort, 40)}’ is no order; this is the one by save time."]
    sort = sort if known else "saved"
    projects = list_projects(session, viewer.caller.project_ids)
    project_ids = _scope(session, viewer.caller, project)
    page = list_run_overviews(
        session, project_ids=project_ids, contains=q, sort=sort, after=from_cursor(after), limit=limit
    )
    totals = count_registry(session, project_ids)
    named = [totals.newest_id, *(each for row in page.rows for each in (row.newest_id, row.loss_id))]
    briefs = read_briefs(session, [each for each in named if each is not None])
    down = count_interrupted(session, project_ids)
    moment = now()
    here = {"q": q, "project": project, "sort": sort if sort != "saved" else ""}
    context = RunsContext(
        answer=answer_of(totals, down, briefs, q, bool(page.rows), project, moment),
        rows=tuple(row_of(row, briefs, moment) for row in page.rows),
        projects=_project_links(projects, project),
        query=q,
        project=project or None,
        columns=columns_of(here, sort),
        order=sort,
        newer=changed("/runs", here) if after else None,
        older=changed("/runs", here, after=to_cursor(page.next_after)) if page.next_after else None,
        order_note=order_note(page.rows, briefs) if sort.endswith("saved") else "",
        empty=() if totals.runs else first_steps(request, project),
        findings=finding_lines(session, project_ids),
        interruptions=_open_ones(session, project_ids),
        down_href=changed("/runs", here, sort="state") if down and sort != "state" else "",
    )
    return show("runs.html", context, title="Runs", section="Runs", viewer=viewer, notices=notices)


def _open_ones(session: Session, project_ids: list[int] | None) -> tuple[Link, ...]:
    """A line for each of the newest interruptions that nobody has closed and no save has ended."""
    rows = list_incidents(session, Asked(project_ids, open=True), limit=4)
    lines = [Link(open_line(row), f"/incidents/{to_text(row.id)}") for row in rows[:3]]
    return (*lines, *([Link("All interruptions that are open", "/incidents?state=open")] if len(rows) > 3 else []))


def _scope(session: Session, caller: Caller, project: str) -> list[int] | None:
    """The project ids to look in. Raises ProjectNotFound, ProjectForbidden."""
    if not project:
        return None if caller.project_ids is None else sorted(caller.project_ids)
    found = find_project(session, project)
    caller.require_project(found.id)
    return [found.id]


def _project_links(projects: list[ProjectRow], chosen: str) -> tuple[Link, ...]:
    every = Link("all", "/runs", not chosen)
    return (every, *(Link(row.name, address("/runs", project=row.name), row.name == chosen) for row in projects))
