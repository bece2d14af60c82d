"""Listings of checkpoints: filtered, ordered, a page at a time, never counted.

The ids of a page are found first, by a statement that may stop early; then everything shown about them in one
more, however long the page is. Where the first order key is a score, the walk follows the index of
that score's finite values and checks the other conditions by primary key.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from sqlalchemy import Select, and_, or_, select, union_all
from sqlalchemy.orm import Session
from sqlalchemy.sql.elements import UnaryExpression
from sqlalchemy.sql.operators import custom_op

from registry import keyset
from registry.checkpoints.rows import CheckpointRow, read_rows
from registry.filters import syntax
from registry.filters.columns import Columns
from registry.filters.compile import compile_filter
from registry.filters.left_out import LeftOut
from registry.filters.order import order_keys
from registry.filters.query import CapabilityResolver, Prepared, prepare
from registry.filters.scores import ScoreChoice
from registry.filters.tables import checkpoint, current_score
from registry.types import CheckpointState

MAX_LIMIT: Final = 1_000
MAX_WALKS: Final = 16  # projects whose indexes one statement walks


@dataclass(frozen=True, slots=True)
class CheckpointPage:
    """`resolved`: what each score name was read as. `next_after`: where the next page starts, None at the end.

    `left_out`: for a score name, the projects that have it as another score only.
    """

    rows: tuple[CheckpointRow, ...]
    resolved: Mapping[str, str | None]
    next_after: list[Any] | None
    left_out: Mapping[str, tuple[LeftOut, ...]] = field(default_factory=dict)


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
    next_after = keyset.to_plain(page[-1][1:]) if more else None
    return CheckpointPage(rows, prepared.resolved, next_after, prepared.left_out)


def _page_ids(session: Session, prepared: Prepared, limit: int, plain: Sequence[Any] | None) -> list[tuple[Any, ...]]:
    """(id, key values...) of the page and of one row more, which tells whether another page follows."""
    driving = driving_score(prepared)
    if driving is None:
        return _run(session, page_select(prepared, limit + 1, plain))
    found = []
    if plain is None or plain[:1] != [None]:
        found = _run(session, driven_select(prepared, limit + 1, plain, driving))
        if len(found) > limit:
            return found
        plain = None
    only = _infinite(driving) if _constrained(prepared, driving) else None
    return found + _run(session, page_select(prepared, limit + 1 - len(found), plain, unranked=True, only=only))


def _run(session: Session, statement: Select[Any]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in session.execute(statement)]


def driving_score(prepared: Prepared) -> ScoreChoice | None:
    """The score whose index gives the order, which is the first key's."""
    if not prepared.order or prepared.order[0].field.segments[0] != "scores":
        return None
    choice = prepared.scores[prepared.order[0].field.segments[1:]]
    return choice if choice is not None and len(choice.series) <= MAX_WALKS else None


def driven_select(prepared: Prepared, count: int, plain: Sequence[Any] | None, choice: ScoreChoice) -> Select[Any]:
    """The first of the checkpoints that have a finite value of the score: all others come after these.

    The index leads with the project, so each project is walked by itself and the heads are merged.
    """
    walks = [page_select(prepared, count, plain, (choice, series)) for series in choice.series]
    if len(walks) == 1:
        return walks[0]
    heads = union_all(*(select(walk.subquery()) for walk in walks)).subquery("heads")
    keys = order_keys(prepared.order, replace(prepared.columns(), driving=(choice, current_score)))
    merged = (replace(key, expression=heads.c[f"key_{place}"]) for place, key in enumerate(keys))
    return select(heads).order_by(*(key.clause for key in merged)).limit(count)


def page_select(
    prepared: Prepared,
    count: int,
    plain: Sequence[Any] | None = None,
    driving: tuple[ScoreChoice, tuple[int, int]] | None = None,
    *,
    unranked: bool = False,
    only: Any = None,
) -> Select[Any]:
    """The statement that finds a page, apart from its execution so that a test can read its plan.

    `driving` is a score and the (project, metric) whose finite values are walked. `unranked`: only what has no
    finite value of the first key, in the order of the others. `only`: of the checkpoints whose ids this gives.
    """
    score = current_score.alias("driving")
    columns = prepared.columns()
    if driving is not None:
        columns = replace(columns, driving=(driving[0], score), project_id=driving[1][0])
    keys = order_keys(prepared.order, columns)
    where = _conditions(prepared, columns)
    if driving is None and prepared.project_ids is not None:
        where.append(_in_projects(prepared.project_ids, prepared.sqlite))
    values = None if plain is None else keyset.from_plain(keys, plain)
    ordered = keys
    if unranked:
        where.append(keys[0].expression.is_(None))
        ordered, values = keys[1:], values and values[1:]
    if only is not None:
        where.append(checkpoint.c.id.in_(only))
    if values is not None:
        where.append(keyset.after(ordered, values))
    query: Any = select(checkpoint.c.id, *(key.expression.label(f"key_{place}") for place, key in enumerate(keys)))
    if driving is None:
        query = query.select_from(checkpoint)
    else:
        project_id, metric_id = driving[1]
        limits = driving[0].limits
        ranked = score.c.value.is_not(None) if limits is None else score.c.value.between(*limits)
        where += [score.c.project_id == project_id, score.c.score_metric_id == metric_id, ranked]
        # By id alone: told of the project too, PostgreSQL may scan all of it for each score before it has statistics.
        query = query.select_from(score).join(checkpoint, checkpoint.c.id == score.c.checkpoint_id)
    found: Select[Any] = columns.join_to(query).where(*where).order_by(*(key.clause for key in ordered))
    return found.limit(count)


def _constrained(prepared: Prepared, driving: ScoreChoice) -> bool:
    """Whether the filter is true only where that score has a value that compares."""
    for term in syntax.conjuncts(prepared.node):
        if isinstance(term, syntax.Comparison | syntax.Membership | syntax.Between):
            segments = term.field.segments
            if segments[0] == "scores" and prepared.scores[segments[1:]] == driving:
                return True
    return False


def _infinite(choice: ScoreChoice) -> Select[Any]:
    """The few checkpoints whose value of a score compares and yet has no place in its order."""
    keys = (current_score.c.project_id, current_score.c.score_metric_id)
    marked = current_score.c.special.in_(("Infinity", "-Infinity"))
    own = or_(*(and_(*(key == each for key, each in zip(keys, series, strict=True))) for series in choice.series))
    return select(current_score.c.checkpoint_id).where(own, current_score.c.value.is_(None), marked)


def _in_projects(project_ids: Collection[int], sqlite: bool) -> Any:
    """SQLite would read all rows of several projects and sort them; the plus keeps it on the order's index."""
    column: Any = checkpoint.c.project_id
    if len(project_ids) == 1:
        return column == next(iter(project_ids))
    return (UnaryExpression(column, operator=custom_op("+")) if sqlite else column).in_(sorted(project_ids))


def _conditions(prepared: Prepared, columns: Columns) -> list[Any]:
    where: list[Any] = []
    if prepared.node is not None:
        where.append(compile_filter(prepared.node, columns))
    terms = syntax.terms_of(prepared.node) if prepared.node is not None else []
    if not any(term.field.segments == ("state",) for term in terms):
        where.append(checkpoint.c.state != CheckpointState.DELETED.value)
    return where
