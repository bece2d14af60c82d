"""Find checkpoints: in plain words, answered with evidence, or in the filter language, answered as a table."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import SessionDep
from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.queries import CheckpointPage, list_checkpoints
from registry.checkpoints.rows import CheckpointRow
from registry.evals.references import PREFIX, PROJECT, SOURCES, population_names
from registry.filters import syntax
from registry.filters.errors import InvalidFilter
from registry.ids import id_or, to_text
from registry.overview.briefs import read_briefs
from registry.overview.runs import has_runs
from registry.projects import find_project, list_projects
from registry.search.answers import SearchAnswer
from registry.search.draft import UnreadableQuery
from registry.search.query import capability_resolver, search_checkpoints
from registry.search.vocabulary import EXAMPLES
from registry.tokens import Caller
from ui import filters
from ui.access import ViewerDep
from ui.commands import first_steps
from ui.contexts import Answer, Link
from ui.contexts.find import FilterRow, FindContext
from ui.csv_files import Cell, csv_file
from ui.filter_table import cell_of, columns_of, filter_answer, lent_cells, mistake_of, parameter_of
from ui.found import (
    answer_of,
    as_filter,
    chips_of,
    incomplete_of,
    like_answer,
    loosen_of,
    population_of,
    resolved_of,
    rows_of,
)
from ui.links import address, changed, from_cursor, to_cursor
from ui.loosen import loosened
from ui.refs import ref_of
from ui.respond import show

router = APIRouter(include_in_schema=False)

LIMIT = 20
MODES = ("words", "filter")
INCOMPLETE = 8  # checkpoints shown that lack a score for a condition
ROWS = 50
CSV_ROWS = 10_000
DEFAULT_COLUMNS = "saved_at, loss, tokens_seen, resumability"
FILTER_EXAMPLES = (
    "scores.gsm8k > 0.6 and not superseded",
    "capabilities.math >= 0.8 and run.parameter_count < 2000000000",
    "pieces.optimizer = 'present' and replicas.tier = 'shared'",
    "not scored and not superseded",
    "loss is nan",
)


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
        page = _like_page(session, viewer.caller, like, shared)
    elif chosen == "filter":
        here = {"mode": "filter", "filter": filter, "order_by": order_by, "columns": columns, "project": project}
        page = _filter_page(session, viewer.caller, here, after, shared)
    else:
        page = _words_page(session, viewer.caller, q.strip(), population, shared)
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
    page = _list(session, viewer.caller, here, None, limit=1000)
    names = list(page.rows[0].values) if page.rows else []

    def rows() -> Any:
        current, count = page, 0
        while True:
            for row in current.rows:
                yield _csv_row(row, names)
            count += len(current.rows)
            if current.next_after is None or count >= CSV_ROWS:
                return
            current = _list(session, viewer.caller, here, current.next_after, limit=1000)

    header = ("checkpoint", "project", "run", "attempt", "step", "kind", *names)
    return csv_file("checkpoints", header, list(rows()))


def _csv_row(row: CheckpointRow, names: Sequence[str]) -> tuple[Cell, ...]:
    own = row.checkpoint
    values = tuple(_plain(row.values.get(name)) for name in names)
    return (to_text(own.id), own.project, own.run.name, own.attempt, own.step, own.kind, *values)


def _plain(value: Any) -> Cell:
    return str(value).lower() if isinstance(value, bool) else value


def _modes(q: str, project: str | None, chosen: str) -> tuple[Link, ...]:
    return (
        Link("In words", address("/find", q=q, project=project), chosen == "words"),
        Link("As a filter", address("/find", mode="filter", project=project), chosen == "filter"),
    )


# ---- in words


def _words_page(session: Session, caller: Caller, q: str, population: str, shared: Mapping[str, Any]) -> FindContext:
    blank = {"filter": "", "order_by": "", "columns": "", **shared}
    modes = _modes(q, shared["project"], "words")
    examples = tuple(Link(text, address("/find", q=text, project=shared["project"])) for text in EXAMPLES)
    if not q:
        answer = Answer("Say what the checkpoint should be good and bad at.")
        return FindContext("words", modes, answer, "", examples=examples, **blank)
    try:
        found = search_checkpoints(
            session,
            project_ids=caller.project_ids,
            query=q,
            project=shared["project"],
            population=population,
            limit=LIMIT,
        )
    except UnreadableQuery as error:
        reason = error.message.partition(" Examples: ")[0]
        return FindContext(
            "words", modes, Answer("That could not be understood.", "bad", reason), q, examples=examples, **blank
        )
    page = _answered(session, found, q, modes, examples, blank)
    return replace(page, populations=_populations(found, q, population, shared["project"]))


def _populations(found: SearchAnswer, q: str, population: str, project: str | None) -> tuple[Link, ...]:
    """Whom percentiles may be among, where the question asks for any."""
    if not found.population.capabilities:
        return ()
    words = {PROJECT: "the checkpoints here"} | {PREFIX + each.name: each.title for each in SOURCES}
    return tuple(
        Link(
            text,
            address("/find", q=q, project=project, population=None if name == PROJECT else name),
            name == population,
        )
        for name, text in words.items()
    )


def _like_page(session: Session, caller: Caller, like: str, shared: Mapping[str, Any]) -> FindContext:
    """Those most like a checkpoint. Raises CheckpointNotFound."""
    number = id_or(like.strip(), CheckpointNotFound)
    found = search_checkpoints(session, project_ids=caller.project_ids, like=number, limit=LIMIT)
    briefs = read_briefs(session, [number, *(each.checkpoint.id for each in found.results)])
    blank = {"filter": "", "order_by": "", "columns": "", **shared}
    return FindContext(
        "words",
        _modes("", shared["project"], "words"),
        like_answer(found, briefs[number]),
        "",
        chips=chips_of(found.interpretation.conditions),
        population=population_of(found),
        results=rows_of(found.results, briefs),
        **blank,
    )


def _answered(
    session: Session,
    found: SearchAnswer,
    q: str,
    modes: tuple[Link, ...],
    examples: tuple[Link, ...],
    blank: Mapping[str, Any],
) -> FindContext:
    briefs = read_briefs(session, [each.checkpoint.id for each in (*found.results, *found.incomplete)])
    understood = found.interpretation
    return FindContext(
        "words",
        modes,
        answer_of(found, LIMIT),
        q,
        chips=chips_of(understood.conditions),
        unparsed=understood.unparsed,
        resolved=resolved_of(understood.resolved, understood.left_out),
        population=population_of(found),
        results=rows_of(found.results, briefs),
        incomplete=rows_of(found.incomplete[:INCOMPLETE], briefs),
        incomplete_words=incomplete_of(found, LIMIT),
        loosen=loosen_of(found),
        as_filter=as_filter(understood.conditions, blank["project"]),
        examples=() if found.results else examples,
        **blank,
    )


# ---- as a filter


def _list(
    session: Session,
    caller: Caller,
    here: Mapping[str, str],
    after: list[Any] | None,
    *,
    limit: int,
    node: syntax.Node | None = None,
) -> CheckpointPage:
    """A page of what the URL asks for; `node` is a filter that was read already."""
    project_ids = caller.project_ids
    if here["project"]:
        row = find_project(session, here["project"])
        caller.require_project(row.id)
        project_ids = frozenset({row.id})
    return list_checkpoints(
        session,
        project_ids=project_ids,
        filter=node or here["filter"].strip() or None,
        order_by=here["order_by"],
        fields=here["columns"] or DEFAULT_COLUMNS,
        limit=limit,
        after=after,
        capabilities=capability_resolver(session, project_ids),
    )


def _loosened(session: Session, caller: Caller, here: Mapping[str, str]) -> tuple[Link, ...]:
    if not here["filter"].strip():
        return ()

    def ask(node: syntax.Node | None, order_by: str, fields: str) -> CheckpointPage:
        asked = {**here, "filter": "", "order_by": order_by, "columns": fields}
        return _list(session, caller, asked, None, limit=1, node=node)

    return loosened(here["filter"], ask, lambda text: changed("/find", here, filter=text))


def _filter_page(
    session: Session, caller: Caller, here: dict[str, str], after: str, shared: Mapping[str, Any]
) -> FindContext:
    typed = {name: here[name] for name in ("filter", "order_by", "columns")} | dict(shared)
    modes = _modes("", shared["project"], "filter")
    examples = tuple(Link(text, changed("/find", here, filter=text)) for text in FILTER_EXAMPLES)
    try:
        page = _list(session, caller, here, from_cursor(after), limit=ROWS)
    except InvalidFilter as error:
        answer = Answer(f"The {parameter_of(error)} has a mistake.", "bad")
        mistake = mistake_of(error, here)
        return FindContext("filter", modes, answer, "", mistake=mistake, examples=examples, **typed)
    names = list(page.rows[0].values) if page.rows else []
    briefs = read_briefs(session, [row.checkpoint.id for row in page.rows])
    lent = lent_cells(session, names, page.resolved, briefs)
    return FindContext(
        "filter",
        modes,
        filter_answer(page, here, bool(after)),
        "",
        resolved=resolved_of(page.resolved, page.left_out),
        filter_columns=columns_of(names, page.rows, here),
        filter_rows=tuple(
            FilterRow(
                ref_of(briefs[row.checkpoint.id]),
                tuple(
                    replace(
                        cell_of(name, row.values.get(name), briefs[row.checkpoint.id]),
                        via=lent.get((row.checkpoint.id, name)),
                    )
                    for name in names
                ),
            )
            for row in page.rows
        ),
        older=changed("/find", here, after=to_cursor(page.next_after)) if page.next_after else None,
        csv_href=address("/find.csv", **{name: value for name, value in here.items() if name != "mode"}),
        loosen_links=() if page.rows or after else _loosened(session, caller, here),
        examples=() if page.rows and here["filter"] else examples,
        **typed,
    )
