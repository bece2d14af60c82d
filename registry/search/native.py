"""Conditions on fields that a population answers from its own arrays: steps, times of saving, and what is of the run.

Everything else is asked of the database, for as few checkpoints as will do.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.db import to_micros
from registry.evals.arrays import read_arrays
from registry.evals.percentiles import Booleans, Integers
from registry.evals.population.table import Population
from registry.filters import syntax, tables
from registry.filters.columns import Columns
from registry.filters.compile import compile_filter
from registry.filters.query import prepare
from registry.filters.times import read_time
from registry.search.conditions import FieldCondition

RUN_FIELDS: Final = frozenset(
    f"run.{name}" for name in ("name", "kind", "owner", "team", "model_family", "parameter_count", "started_at")
)
COMPARE: Final = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


def is_native(condition: FieldCondition) -> bool:
    return condition.field in ("step", "saved_at") or condition.field in RUN_FIELDS


def rows_that_meet(session: Session, population: Population, conditions: Sequence[FieldCondition]) -> Booleans:
    """(n,) which checkpoints meet these native conditions."""
    met = np.ones(len(population.rows), dtype=bool)
    of_run = [condition.node() for condition in conditions if condition.field in RUN_FIELDS]
    if of_run:
        met &= _of_runs(session, population, of_run)
    for condition in conditions:
        if condition.field not in RUN_FIELDS:
            values, wanted = _values(population, condition)
            met &= COMPARE[condition.relation](values, wanted)
    return met


def _values(population: Population, condition: FieldCondition) -> tuple[Integers, float | int]:
    literal = condition.node().value.value  # of a type that the field takes: what does not is refused there
    if condition.field == "saved_at":
        moment = read_time(str(literal))
        assert isinstance(moment, datetime)
        return population.rows.saved_at, to_micros(moment)
    assert isinstance(literal, int | float)
    return population.rows.steps, literal


def _of_runs(session: Session, population: Population, terms: Sequence[syntax.Comparison]) -> Booleans:
    prepared = prepare(session, project_ids=population.project_ids, filter=syntax.conjunction(terms))
    columns = Columns(prepared.scores, prepared.percentiles, prepared.sqlite)
    query = select(tables.run.c.id).where(tables.run.c.project_id.in_(sorted(population.project_ids)))
    if prepared.project_ids is not None:
        query = query.where(tables.run.c.project_id.in_(sorted(prepared.project_ids)))
    if prepared.node is not None:
        query = query.where(compile_filter(prepared.node, columns))
    (ids,) = read_arrays(session, [query], [np.int64])
    return population.rows.of_runs(ids)
