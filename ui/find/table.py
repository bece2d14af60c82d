"""A search in the filter language: a table, its columns to choose, and where a mistake is."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy.orm import Session

from registry.checkpoints.queries import CheckpointPage, list_checkpoints
from registry.filters import syntax
from registry.filters.errors import InvalidFilter
from registry.filters.left_out import LeftOut, asked_instead
from registry.overview.briefs import read_briefs
from registry.projects import find_project
from registry.search.query import capability_resolver
from registry.tokens import Caller
from ui.contexts import Answer, Link
from ui.contexts.find import FilterRow, FindContext
from ui.find.cells import cell_of, columns_of, filter_answer, lent_cells, mistake_of, parameter_of
from ui.find.found import (
    resolved_of,
)
from ui.find.loosen import loosened
from ui.find.words import modes_of
from ui.links import address, changed, from_cursor, to_cursor
from ui.refs import ref_of

ROWS = 50
DEFAULT_COLUMNS = "saved_at, loss, tokens_seen, resumability"
FILTER_EXAMPLES = (
    "scores.gsm8k > 0.6 and not superseded",
    "capabilities.math >= 0.8 and run.parameter_count < 2000000000",
    "pieces.optimizer = 'present' and replicas.tier = 'shared'",
    "not scored and not superseded",
    "loss is nan",
)


def list_asked(
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


def _loosened(
    session: Session, caller: Caller, here: Mapping[str, str], left_out: Mapping[str, Sequence[LeftOut]]
) -> tuple[Link, ...]:
    """Who was left out can be asked by another name of the score; else which condition excludes everything."""
    if not here["filter"].strip():
        return ()
    if other := asked_instead(left_out, here["filter"]):
        return (Link(f"Ask those that were left out: {other}", changed("/find", here, filter=other)),)

    def ask(node: syntax.Node | None, order_by: str, fields: str) -> CheckpointPage:
        asked = {**here, "filter": "", "order_by": order_by, "columns": fields}
        return list_asked(session, caller, asked, None, limit=1, node=node)

    return loosened(here["filter"], ask, lambda text: changed("/find", here, filter=text))


def filter_page(
    session: Session, caller: Caller, here: dict[str, str], after: str, shared: Mapping[str, Any]
) -> FindContext:
    typed = {name: here[name] for name in ("filter", "order_by", "columns")} | dict(shared)
    modes = modes_of("", shared["project"], "filter")
    examples = tuple(Link(text, changed("/find", here, filter=text)) for text in FILTER_EXAMPLES)
    try:
        page = list_asked(session, caller, here, from_cursor(after), limit=ROWS)
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
        loosen_links=() if page.rows or after else _loosened(session, caller, here, page.left_out),
        examples=() if page.rows and here["filter"] else examples,
        **typed,
    )
