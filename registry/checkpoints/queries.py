"""Listings of checkpoints: filtered, ordered, a page at a time, never counted.

The ids of a page are found first, by a statement that may stop early; then everything shown about them in two
more, however long the page is. Where the first order key is a score, the walk follows the index of
that score's finite values and checks the other conditions by primary key.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Select, and_, select
from sqlalchemy.orm import Session, aliased

from registry import keyset
from registry.checkpoints.rows import CheckpointRow, read_rows
from registry.filters import syntax
from registry.filters.columns import Columns
from registry.filters.compile import compile_filter
from registry.filters.order import order_keys
from registry.filters.query import CapabilityResolver, Prepared, prepare
from registry.filters.scores import ScoreChoice
from registry.models import Checkpoint, CurrentScore
from registry.types import CheckpointState

MAX_LIMIT: Final = 1_000


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """`resolved`: what each score name was read as. `next_after`: where the next page starts, None at the end."""

    rows: tuple[CheckpointRow, ...]
    resolved: Mapping[str, str | None]
    next_after: list[Any] | None


def list_checkpoints(
    session: Session,
    *,
    project_ids: Collection[int] | None,
    filter: str | syntax.Node | None = None,
    order_by: str = "",
    fields: str = "",
    limit: int = 50,
    after: Sequence[Any] | None = None,
    capabilities: CapabilityResolver | None = None,
) -> CheckpointPage:
    """A page of the checkpoints in the projects (None: all), newest `saved_at` first unless `order_by` says otherwise.

    Deleted ones are left out unless the filter speaks of `state`. Missing and non-finite values come last in
    both directions; ties fall to `saved_at`, then id, newest first. `after` is the `next_after` of the page before.
    Raises InvalidFilter, InvalidCursor.
    """
    prepared = prepare(
        session,
        project_ids=project_ids,
        filter=filter,
        order_by=order_by,
        fields=fields,
        capabilities=capabilities,
    )
    limit = max(1, min(limit, MAX_LIMIT))
    found = _page_ids(session, prepared, limit, after)
    page = found[:limit]
    rows = read_rows(session, prepared, [row[0] for row in page])
    more = len(found) > limit
    return CheckpointPage(rows, prepared.resolved, keyset.to_plain(page[-1][1:]) if more else None)


def _page_ids(session: Session, prepared: Prepared, limit: int, plain: Sequence[Any] | None) -> list[tuple[Any, ...]]:
    """(id, key values...) of the page and of one row more, which tells whether another page follows."""
    driving = driving_score(prepared)
    if driving is not None and (plain is None or plain[:1] != [None]):
        statement = page_select(prepared, limit + 1, plain, driving)
        found = [tuple(row) for row in session.execute(statement)]
        if len(found) > limit or _constrained(prepared, driving):
            return found
    return [tuple(row) for row in session.execute(page_select(prepared, limit + 1, plain))]


def page_select(
    prepared: Prepared, count: int, plain: Sequence[Any] | None = None, driving: ScoreChoice | None = None
) -> Select[Any]:
    """The statement that finds a page, apart from its execution so that a test can read its plan.

    With `driving`, only checkpoints that have a finite value of that score are found: they all come first.
    """
    score = aliased(CurrentScore, name="driving") if driving is not None else None
    columns = prepared.columns(driving=(driving, score) if driving is not None else None)
    keys = order_keys(prepared.order, columns)
    where = _conditions(prepared, columns)
    if plain is not None:
        where.append(keyset.after(keys, keyset.from_plain(keys, plain)))
    query: Any = select(Checkpoint.id, *(key.expression.label(f"key_{place}") for place, key in enumerate(keys)))
    if score is not None and driving is not None:
        ((project_id, metric_id),) = driving.series
        where += [score.project_id == project_id, score.score_metric_id == metric_id, score.value.is_not(None)]
        own = and_(Checkpoint.project_id == score.project_id, Checkpoint.id == score.checkpoint_id)
        query = query.select_from(score).join(Checkpoint, own)
    else:
        query = query.select_from(Checkpoint)
    found: Select[Any] = columns.join_to(query).where(*where).order_by(*(key.clause for key in keys))
    return found.limit(count)


def driving_score(prepared: Prepared) -> ScoreChoice | None:
    """The score whose index gives the order: the first key's, where it occurs in one project only."""
    if not prepared.order or prepared.order[0].field.segments[0] != "scores":
        return None
    choice = prepared.scores[prepared.order[0].field.segments[1:]]
    return choice if choice is not None and len(choice.series) == 1 else None


def _constrained(prepared: Prepared, driving: ScoreChoice) -> bool:
    """Whether the filter is true only where that score has a finite value."""
    node = prepared.node
    for term in node.terms if isinstance(node, syntax.And) else (node,):
        if isinstance(term, syntax.Comparison | syntax.Membership | syntax.Between):
            segments = term.field.segments
            if segments[0] == "scores" and prepared.scores[segments[1:]] == driving:
                return True
    return False


def _conditions(prepared: Prepared, columns: Columns) -> list[Any]:
    where: list[Any] = []
    if prepared.project_ids is not None:
        projects = sorted(prepared.project_ids)
        column = Checkpoint.project_id
        where.append(column == projects[0] if len(projects) == 1 else column.in_(projects))
    if prepared.node is not None:
        where.append(compile_filter(prepared.node, columns))
    terms = syntax.terms_of(prepared.node) if prepared.node is not None else []
    if not any(term.field.segments == ("state",) for term in terms):
        where.append(Checkpoint.state != CheckpointState.DELETED.value)
    return where
