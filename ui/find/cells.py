"""The table of a filter: its answer, its columns and cells, and the place of a mistake in the text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy.orm import Session

from registry.checkpoints.queries import CheckpointPage
from registry.checkpoints.rows import CheckpointRow
from registry.filters.check import parse_order_by
from registry.filters.errors import InvalidFilter
from registry.filters.print import field_to_text
from registry.ids import to_text
from registry.overview.briefs import Brief
from registry.overview.scores import lent_scores
from ui import filters
from ui.contexts import Answer, Link
from ui.contexts.find import FilterCell, FilterColumn, PlaceOfMistake
from ui.curves import score_text
from ui.links import changed

# Columns whose numbers are said as everywhere on the pages: 270 B tokens; the title has every digit.
SHOWN_AS: dict[str, Callable[[Any], str]] = {"tokens_seen": filters.count, "run.parameter_count": filters.count}


def lent_cells(
    session: Session, names: Sequence[str], resolved: Mapping[str, str | None], briefs: Mapping[int, Brief]
) -> dict[tuple[int, str], str]:
    """Of the columns that are scores, those of which checkpoints were measured on a lossless copy: its address."""
    columns = {(resolved.get(name) or name): name for name in names if name.startswith("scores.")}
    found: dict[tuple[int, str], str] = {}
    for project_id in {brief.project_id for brief in briefs.values()} if columns else ():
        own = [brief.id for brief in briefs.values() if brief.project_id == project_id]
        for checkpoint_id, scores in lent_scores(session, project_id, own).items():
            for (benchmark, metric, filter), via in scores.items():
                # A filter that is empty is written ‘none’ where all three are named.
                written = {score_text(benchmark, metric, each) for each in (filter, filter or "none")}
                for column in (columns.get(f"scores.{each}") for each in written):
                    if column is not None:
                        found[checkpoint_id, column] = f"/checkpoints/{to_text(via)}"
    return found


def filter_answer(page: CheckpointPage, here: Mapping[str, str], further: bool) -> Answer:
    if not page.rows:
        return Answer("No checkpoint matches." if here["filter"] else "No checkpoint is recorded yet.", "warn")
    order = here["order_by"] or "newest first"
    what = "match" if here["filter"] else "are recorded"
    if further or page.next_after is not None:
        return Answer(f"Checkpoints that {what}, {order}; {len(page.rows)} on this page.")
    return Answer(f"{filters.plural(len(page.rows), 'checkpoint')} {'matches' if len(page.rows) == 1 else what}.")


def parameter_of(error: InvalidFilter) -> str:
    return {"order_by": "order", "fields": "list of columns"}.get(error.extras.get("parameter", ""), "filter")


def mistake_of(error: InvalidFilter, here: Mapping[str, str]) -> PlaceOfMistake:
    """The text around the place, and what was expected there."""
    source = {"order_by": "order_by", "fields": "columns"}.get(error.extras.get("parameter", ""), "filter")
    text, at = here[source], int(error.extras["position"])
    return PlaceOfMistake(
        text[max(0, at - 200) : at], text[at : at + 1], text[at + 1 : at + 200], error.message.partition("\n")[0]
    )


def columns_of(
    names: Sequence[str], rows: Sequence[CheckpointRow], here: Mapping[str, str]
) -> tuple[FilterColumn, ...]:
    """Each column, its heading a link that sorts by it, and turns the order where it sorts already."""
    keys = parse_order_by(here["order_by"])
    first = (field_to_text(keys[0].field), keys[0].descending) if keys else ("saved_at", True)
    columns = []
    for name in names:
        chosen = name == first[0]
        order = name if chosen and first[1] else f"{name} desc"
        numeric = all(isinstance(row.values.get(name), int | float | None) for row in rows)
        link = Link(name, changed("/find", here, order_by=order), chosen)
        columns.append(FilterColumn(name, link, numeric, "descending" if first[1] else "ascending"))
    return tuple(columns)


def cell_of(name: str, value: Any, brief: Brief) -> FilterCell:
    if isinstance(value, bool):
        return FilterCell("yes" if value else "no", numeric=False)
    if isinstance(value, int | float) and name in SHOWN_AS:
        return FilterCell(SHOWN_AS[name](value), title=filters.exact(value))
    if isinstance(value, int | float):
        return FilterCell(filters.number(value), title=filters.exact(value))
    if value is None:
        return FilterCell(filters.MISSING)
    if hasattr(value, "isoformat"):
        text = filters.absolute(value).removesuffix(" UTC")
        if name == "saved_at" and brief.saved_at_assumed:
            return FilterCell(f"{text} (arrival)", numeric=False, title="UTC; nobody said when it was saved")
        return FilterCell(text, numeric=False, title="UTC")
    return FilterCell(filters.middle(str(value), 60), numeric=False, title=str(value))
