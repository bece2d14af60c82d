"""Find checkpoints: in plain words, answered with evidence, or in the filter language, answered as a table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, StreamingResponse

from api.deps import SessionDep
from registry.checkpoints.rows import CheckpointRow
from registry.evals.references import PROJECT, population_names
from registry.ids import to_text
from registry.overview.runs import has_runs
from registry.projects import list_projects
from ui import filters
from ui.access import ViewerDep
from ui.commands import first_steps
from ui.csv_files import Cell, csv_file
from ui.find.table import filter_page, list_asked
from ui.find.words import like_page, words_page
from ui.respond import show

router = APIRouter(include_in_schema=False)

MODES = ("words", "filter")
CSV_ROWS = 10_000


@router.get("/find")
def find_page(
    request: Request,
    session: SessionDep,
    viewer: ViewerDep,
    q: str = "",
    mode: str = "",
    filter: str = "",
    order_by: str = "",
    columns: str = "",
    project: str = "",
    after: str = "",
    like: str = "",
    population: str = PROJECT,
) -> HTMLResponse:
    """`like` is a checkpoint: those most like it. `population` is whom percentiles are among.

    Without a `mode`, a filter, an order or columns ask for the table, and a question in words for its answer.
    """
    tabular = {"filter": filter, "order_by": order_by, "columns": columns}
    asked = [name for name, text in tabular.items() if text.strip()]
    chosen = mode if mode in MODES else ("filter" if asked and not q.strip() else "words")
    notices = _left_out(mode, chosen, asked, q)
    if population not in population_names():
        notices.append(f"‘{filters.middle(population, 40)}’ is no population: {', '.join(population_names())}.")
        population = PROJECT
    projects = tuple(row.name for row in list_projects(session, viewer.caller.project_ids))
    shared = {"project": project or None, "projects": projects}
    if like:
        page = like_page(session, viewer.caller, like, shared)
    elif chosen == "filter":
        here = {"mode": "filter", "filter": filter, "order_by": order_by, "columns": columns, "project": project}
        page = filter_page(session, viewer.caller, here, after, shared)
    else:
        page = words_page(session, viewer.caller, q.strip(), population, shared)
    if not (page.results or page.incomplete or page.filter_rows or has_runs(session, viewer.caller.project_ids)):
        page = replace(page, empty=first_steps(request))
    status = 400 if page.mistake or page.answer.tone == "bad" else 200
    return show("find.html", page, title="Find", section="Find", viewer=viewer, status=status, notices=notices)


def _left_out(mode: str, chosen: str, tabular: Sequence[str], q: str) -> list[str]:
    """What the address says and this mode does not use."""
    said = []
    if mode and mode not in MODES:
        said.append(f"‘{filters.middle(mode, 40)}’ is no way to ask: words or filter.")
    if chosen == "words" and tabular:
        names = " and ".join(tabular)
        said.append(f"A question in words was asked, so {names} of the address was left out. Ask as a filter for that.")
    if chosen == "filter" and q.strip():
        said.append(f"A filter was asked for, so the words ‘{filters.middle(q.strip(), 60)}’ were left out.")
    return said


@router.get("/find.csv")
def find_csv(
    session: SessionDep,
    viewer: ViewerDep,
    filter: str = "",
    order_by: str = "",
    columns: str = "",
    project: str = "",
) -> StreamingResponse:
    """The first 10,000 rows of a filter, every digit kept."""
    here = {"filter": filter, "order_by": order_by, "columns": columns, "project": project}
    page = list_asked(session, viewer.caller, here, None, limit=1000)
    names = list(page.rows[0].values) if page.rows else []

    def rows() -> Any:
        current, count = page, 0
        while True:
            for row in current.rows:
                yield _csv_row(row, names)
            count += len(current.rows)
            if current.next_after is None or count >= CSV_ROWS:
                return
            current = list_asked(session, viewer.caller, here, current.next_after, limit=1000)

    header = ("checkpoint", "project", "run", "attempt", "step", "kind", *names)
    return csv_file("checkpoints", header, list(rows()))


def _csv_row(row: CheckpointRow, names: Sequence[str]) -> tuple[Cell, ...]:
    own = row.checkpoint
    values = tuple(_plain(row.values.get(name)) for name in names)
    return (to_text(own.id), own.project, own.run.name, own.attempt, own.step, own.kind, *values)


def _plain(value: Any) -> Cell:
    return str(value).lower() if isinstance(value, bool) else value


# ---- in words


# ---- as a filter
