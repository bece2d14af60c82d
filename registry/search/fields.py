"""Conditions on fields: which checkpoints they allow, asked of the population where it knows, else of the database."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from registry.evals.percentiles import Booleans, Integers
from registry.evals.population.against import Against
from registry.evals.population.table import Part, Population
from registry.filters import syntax, tables
from registry.filters.compile import compile_filter
from registry.filters.query import prepare
from registry.search.conditions import FieldCondition
from registry.search.native import is_native, rows_that_meet
from registry.search.reading import LOWEST_LOSS, NEWEST, OLDEST, SMALLEST
from registry.upsert import chunks

Table = Population | Part | Against

# So many checkpoints are fetched to see whether the fields leave few; where they leave more, the best candidates are
# checked instead, a batch at a time, and everything is fetched only where those give no answer.
FEW: Final = 20_000
BATCH: Final = 1_000
MAX_CHECKED: Final = 20_000


@dataclass(frozen=True, eq=False)
class Allowed:
    """`rows`: (n,) what is not excluded yet. `rest`: conditions that are still to be checked for each row of those."""

    rows: Booleans
    rest: tuple[FieldCondition, ...] = ()


def allowed_rows(session: Session, table: Table, population: Population, fields: Sequence[FieldCondition]) -> Allowed:
    """What the fields allow of the live committed checkpoints. Raises InvalidFilter."""
    nodes = [condition.node() for condition in fields]  # a mistake is found, whoever would have compared
    native = [condition for condition in fields if is_native(condition)]
    rest = tuple(condition for condition in fields if not is_native(condition))
    rows = table.reference.copy()
    if native:
        met = rows_that_meet(session, population, native)
        rows &= met[table.rows] if isinstance(table, Part) else met
    if not rest or not nodes:
        return Allowed(rows)
    some = field_ids(session, population.project_ids, rest, most=FEW + 1)
    if len(some) <= FEW:
        return Allowed(rows & _rows_of(table, some))
    return Allowed(rows, rest)


def checked_all(session: Session, table: Table, allowed: Allowed, project_ids: Collection[int]) -> Allowed:
    """Everything checked, however much it is."""
    if not allowed.rest:
        return allowed
    return Allowed(allowed.rows & _rows_of(table, field_ids(session, project_ids, allowed.rest)))


def checked(
    session: Session,
    table: Table,
    places: Integers,
    rest: Sequence[FieldCondition],
    project_ids: Collection[int],
) -> Integers:
    """Those of the rows at these places that meet the conditions, in their order."""
    if not rest:
        return places
    found: set[int] = set()
    for chunk in chunks(table.checkpoints[places].tolist()):
        found.update(field_ids(session, project_ids, rest, among=chunk))
    return places[np.isin(table.checkpoints[places], np.fromiter(found, np.int64, len(found)))]


def field_ids(
    session: Session,
    project_ids: Collection[int] | None,
    fields: Sequence[FieldCondition],
    *,
    first: int | None = None,
    order: str = NEWEST,
    most: int | None = None,
    among: Sequence[int] | None = None,
) -> list[int]:
    """The live committed checkpoints that the fields allow: so many `first` in an order, at most `most` in any order,
    or all; of those `among` these where given. By loss only those that have a finite one."""
    checkpoint = tables.checkpoint
    query, where = _select(session, project_ids, fields, checkpoint.c.id)
    if among is not None:
        where.append(checkpoint.c.id.in_(among))
    query = query.where(*where)
    if first is not None:
        query = _ordered(query, order).limit(first)
    elif most is not None:
        query = query.limit(most)
    return list(session.scalars(query))


def _ordered(query: Any, order: str) -> Any:
    checkpoint = tables.checkpoint.c
    if order == LOWEST_LOSS:  # of equal ones the newest
        keys = (checkpoint.loss, checkpoint.saved_at.desc(), checkpoint.id.desc())
        return query.where(checkpoint.loss.is_not(None)).order_by(*keys)
    if order == SMALLEST:  # of equal ones the newest, and those of unknown size last
        runs = tables.run.c
        size = select(runs.parameter_count).where(runs.id == checkpoint.run_id).scalar_subquery()
        return query.order_by(size.is_(None), size, checkpoint.saved_at.desc(), checkpoint.id.desc())
    return query.order_by(*(key if order == OLDEST else key.desc() for key in (checkpoint.saved_at, checkpoint.id)))


def count_fields(session: Session, project_ids: Collection[int] | None, fields: Sequence[FieldCondition]) -> int:
    """How many live committed checkpoints the fields allow."""
    query, where = _select(session, project_ids, fields, func.count())
    return int(session.scalar(query.where(*where)) or 0)


def _select(
    session: Session, project_ids: Collection[int] | None, fields: Sequence[FieldCondition], what: Any
) -> tuple[Any, list[Any]]:
    terms: list[syntax.Node] = [condition.node() for condition in fields]
    terms.append(syntax.Comparison(syntax.Field(("state",)), syntax.Operator.EQUAL, syntax.Literal("committed")))
    terms.append(syntax.Not(syntax.Flag(syntax.Field(("superseded",)))))
    prepared = prepare(session, project_ids=project_ids, filter=syntax.conjunction(terms))
    assert prepared.node is not None
    columns = prepared.columns()
    where = [compile_filter(prepared.node, columns)]
    if prepared.project_ids is not None:
        where.append(tables.checkpoint.c.project_id.in_(sorted(prepared.project_ids)))
    return columns.join_to(select(what).select_from(tables.checkpoint)), where


def _rows_of(table: Table, ids: Sequence[int]) -> Booleans:
    found = np.zeros(len(table.checkpoints), dtype=bool)
    wanted = np.array(sorted(ids), dtype=np.int64)
    at = np.searchsorted(table.checkpoints, wanted)
    at, wanted = at[at < len(found)], wanted[at < len(found)]
    found[at[table.checkpoints[at] == wanted]] = True
    return found
