"""Every run with its newest checkpoint; of an empty registry, how to send the first one."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.checkpoints.placing import AHEAD
from registry.db import now
from registry.ids import to_text
from registry.incidents.queries import Asked, list_incidents
from registry.overview.briefs import Brief, read_briefs
from registry.overview.runs import RunOverview, Totals, count_registry, list_run_overviews
from registry.projects import ProjectRow, find_project, list_projects
from registry.tokens import Caller
from ui import filters
from ui.access import ViewerDep
from ui.charts import colour_of
from ui.commands import first_steps
from ui.contexts import Answer, Link
from ui.contexts.runs import RunRow, RunsContext
from ui.finding_lines import finding_lines
from ui.incident_views import open_line
from ui.links import address, changed, from_cursor, to_cursor
from ui.refs import ref_of, run_state, saved_in_words
from ui.respond import show

router = APIRouter(include_in_schema=False)

SORTS = {"name": "run", "saved": "saved", "checkpoints": "checkpoints", "size": "parameters"}


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
    """Newest checkpoint first, unless another column is asked for."""
    notices = [] if sort in SORTS else [f"‘{filters.middle(sort, 40)}’ is no order; this is the one by save time."]
    sort = sort if sort in SORTS else "saved"
    projects = list_projects(session, viewer.caller.project_ids)
    project_ids = _scope(session, viewer.caller, project)
    page = list_run_overviews(
        session, project_ids=project_ids, contains=q, sort=sort, after=from_cursor(after), limit=limit
    )
    totals = count_registry(session, project_ids)
    ids = [row.newest_id for row in page.rows if row.newest_id is not None]
    briefs = read_briefs(session, [*ids, *([totals.newest_id] if totals.newest_id else [])])
    moment = now()
    here = {"q": q, "project": project, "sort": sort if sort != "saved" else ""}
    context = RunsContext(
        answer=_answer(totals, page.rows, briefs, q, project, moment),
        rows=tuple(_row(row, briefs, moment) for row in page.rows),
        projects=_project_links(projects, project),
        query=q,
        project=project or None,
        sorts={name: Link(text, changed("/runs", here, sort=name), name == sort) for name, text in SORTS.items()},
        order=sort,
        newer=changed("/runs", here) if after else None,
        older=changed("/runs", here, after=to_cursor(page.next_after)) if page.next_after else None,
        order_note=_order_note(page.rows, briefs) if sort == "saved" else "",
        empty=() if totals.runs else first_steps(request, project),
        findings=finding_lines(session, project_ids),
        interruptions=_open_ones(session, project_ids),
    )
    return show("runs.html", context, title="Runs", section="Runs", viewer=viewer, notices=notices)


def _open_ones(session: Session, project_ids: list[int] | None) -> tuple[Link, ...]:
    """A line for each of the newest interruptions that nobody has closed and no save has ended."""
    rows = list_incidents(session, Asked(project_ids, open=True), limit=4)
    lines = [Link(open_line(row), f"/incidents/{to_text(row.id)}") for row in rows[:3]]
    return (*lines, *([Link("All that are open", "/incidents?state=open")] if len(rows) > 3 else []))


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


def _answer(
    totals: Totals, rows: tuple[RunOverview, ...], briefs: dict[int, Brief], query: str, project: str, moment: datetime
) -> Answer:
    where = f"in {project}" if project else f"in {filters.plural(totals.projects, 'project')}"
    if not totals.runs:
        return Answer("No run yet: the first checkpoint makes one." if not project else f"No run {where} yet.")
    if query and not rows:
        return Answer(f"No run {where} has ‘{query[:60]}’ in its name.", "warn", "Try a shorter part of the name.")
    newest = briefs.get(totals.newest_id) if totals.newest_id else None
    if query:
        return Answer(f"Runs {where} with ‘{query[:60]}’ in their names.")
    if newest is None:
        return Answer(f"{filters.plural(totals.runs, 'run')} {where}, and no checkpoint yet.")
    saved = f"{newest.run_name} at step {filters.grouped(newest.step)}"
    return Answer(
        f"{filters.plural(totals.runs, 'run')} {where}; the newest checkpoint {_when(newest, moment)}.",
        detail=f"It is {filters.middle(saved, 100)}.",
    )


def _when(newest: Brief, moment: datetime) -> str:
    """Of a time to come, which is no longer taken, that it is none."""
    if newest.saved_at > moment + AHEAD:
        return f"is dated {newest.saved_at:%Y-%m-%d}, by a clock that was wrong"
    return f"was {saved_in_words(newest, moment)}"


def _order_note(rows: tuple[RunOverview, ...], briefs: dict[int, Brief]) -> str:
    """Where the order by save time rests on a time that nobody gave."""
    newest = [briefs[row.newest_id] for row in rows if row.newest_id in briefs]
    assumed = sum(brief.saved_at_assumed for brief in newest)
    if not assumed:
        return ""
    whose = "these runs" if assumed == len(newest) else f"{filters.grouped(assumed)} of these runs"
    return f"Nobody said when {whose} saved: their place in this order is when their records arrived."


def _row(run: RunOverview, briefs: dict[int, Brief], moment: datetime) -> RunRow:
    newest = briefs.get(run.newest_id) if run.newest_id else None
    return RunRow(
        id=to_text(run.id),
        name=run.name,
        project=run.project,
        colour=colour_of(to_text(run.id)),
        state=run_state(run, moment),
        owner=run.owner,
        attempts=run.attempts,
        checkpoints=run.checkpoints,
        newest=ref_of(newest) if newest else None,
        newest_step=newest.step if newest else run.heartbeat_step,
        parameter_count=run.parameter_count,
        loss=newest.loss if newest else None,
        data_version=newest.data_version if newest else None,
    )
