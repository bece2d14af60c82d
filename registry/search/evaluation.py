"""Conditions held against every checkpoint of some projects: how well each is met, and what is not known."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.capability import Ranking, rank_capability
from registry.evals.catalogue import catalogue
from registry.evals.columns import Column, ScoreTable, oriented
from registry.evals.percentiles import Booleans, Floats, midranks
from registry.evals.score_table import read_columns, read_table
from registry.filters import syntax, tables
from registry.filters.compile import compile_filter
from registry.filters.print import field_to_text
from registry.filters.query import prepare
from registry.filters.scores import NO_NAME, ScoreChoice, choose_scores
from registry.search.conditions import (
    STRONG,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
)
from registry.types import Direction

ScoreCondition = CapabilityCondition | BenchmarkCondition
SIZE_FIELD: Final = "run.parameter_count"
_UNMET_AT_MOST: Final = 0.999  # an unmet condition never scores as a met one does
_COMPARE: Final = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, eq=False)
class Evaluation:
    """`scored` are the conditions on scores; `scores` and `met` are (n, scored): NaN and False where not evaluated.

    `conditions` are all of them, with 'strong gsm8k' written as the score that it means here; `unranked`: benchmarks
    of which no such score can be said. `allowed`: (n,) what the fields allow. `sized`: the population is that of the
    size asked for. `ranks`: the percentiles in the column of each benchmark condition.
    """

    table: ScoreTable
    conditions: tuple[Condition, ...]
    scored: tuple[ScoreCondition, ...]
    scores: Floats
    met: Booleans
    ranks: dict[BenchmarkCondition, Floats]
    allowed: Booleans
    rankings: dict[str, Ranking]
    places: dict[BenchmarkCondition, int]
    resolved: dict[str, str | None]
    unranked: tuple[str, ...]
    sized: bool


def evaluate(session: Session, project_ids: Collection[int] | None, conditions: Sequence[Condition]) -> Evaluation:
    """Hold the conditions against every live committed checkpoint that has a score they speak of.

    Conditions on fields select; they are never met by halves. Raises InvalidFilter for a field that cannot be compared.
    """
    choices = _choices(session, project_ids, conditions)
    columns, metric_ids = read_columns(session, project_ids)
    wanted = _wanted(columns, conditions, choices)
    table = read_table(session, project_ids, wanted, columns, metric_ids)
    fields = [condition for condition in conditions if isinstance(condition, FieldCondition)]
    reference, sized = _reference(session, project_ids, table, fields)
    rankings, sized = _rankings(table, conditions, reference, sized)
    places = {name: _place(table, name, choices.get(name)) for name in choices}
    plain, unranked = _resolve(table, conditions, places, reference)
    scored = tuple(condition for condition in plain if isinstance(condition, CapabilityCondition | BenchmarkCondition))
    place_of = {each: places[_key(each)] for each in scored if isinstance(each, BenchmarkCondition)}
    ranks = {each: _ranks(table, place, reference) for each, place in place_of.items() if place is not None}
    held = [_hold(table, condition, rankings, place_of, reference) for condition in scored]
    size = len(table.checkpoints)
    return Evaluation(
        table=table,
        conditions=plain,
        scored=scored,
        scores=np.column_stack([score for score, _ in held]) if held else np.empty((size, 0)),
        met=np.column_stack([met for _, met in held]) if held else np.empty((size, 0), dtype=bool),
        ranks=ranks,
        allowed=_rows_of(table, field_ids(session, project_ids, fields)) if fields else np.ones(size, dtype=bool),
        rankings=rankings,
        places={condition: place for condition, place in place_of.items() if place is not None},
        resolved={_shown(name): _read_as(table, choice, places[name]) for name, choice in choices.items()},
        unranked=unranked,
        sized=sized,
    )


def field_ids(
    session: Session, project_ids: Collection[int] | None, fields: Sequence[FieldCondition], newest: int | None = None
) -> list[int]:
    """The live committed checkpoints that the fields allow, newest first; at most `newest` where given."""
    terms: list[syntax.Node] = [condition.node() for condition in fields]
    terms.append(syntax.Comparison(syntax.Field(("state",)), syntax.Operator.EQUAL, syntax.Literal("committed")))
    terms.append(syntax.Not(syntax.Flag(syntax.Field(("superseded",)))))
    prepared = prepare(session, project_ids=project_ids, filter=syntax.conjunction(terms))
    assert prepared.node is not None
    columns = prepared.columns()
    where = [compile_filter(prepared.node, columns)]
    checkpoint = tables.checkpoint
    if prepared.project_ids is not None:
        where.append(checkpoint.c.project_id.in_(sorted(prepared.project_ids)))
    query = columns.join_to(select(checkpoint.c.id).select_from(checkpoint)).where(*where)
    if newest is not None:
        query = query.order_by(checkpoint.c.saved_at.desc(), checkpoint.c.id.desc()).limit(newest)
    return list(session.scalars(query))


def _choices(
    session: Session, project_ids: Collection[int] | None, conditions: Sequence[Condition]
) -> dict[tuple[str, ...], ScoreChoice | None]:
    names = [_key(each) for each in conditions if isinstance(each, BenchmarkCondition | StandingCondition)]
    return choose_scores(session, project_ids, names)


def _key(condition: BenchmarkCondition | StandingCondition) -> tuple[str, ...]:
    """The name under which the filter language chooses a score."""
    if isinstance(condition, StandingCondition) or condition.metric is None:
        return (condition.benchmark,)
    rest = () if condition.filter is None else (condition.filter or NO_NAME,)
    return (condition.benchmark, condition.metric or NO_NAME, *rest)


def _shown(name: tuple[str, ...]) -> str:
    return field_to_text(syntax.Field(("scores", *name)))


def _read_as(table: ScoreTable, choice: ScoreChoice | None, place: int | None) -> str | None:
    if choice is not None:
        return choice.text
    if place is None:
        return None
    column = table.columns[place]
    return f"the mean of {column.parts} parts of {column.name} ({column.metric or NO_NAME})"


def _wanted(
    columns: Sequence[Column],
    conditions: Sequence[Condition],
    choices: dict[tuple[str, ...], ScoreChoice | None],
) -> list[Column]:
    capabilities = {each.capability for each in conditions if isinstance(each, CapabilityCondition)}
    chosen = {(each.benchmark, each.metric, each.filter) for each in choices.values() if each}
    unknown = [catalogue().get(name[0]) for name, choice in choices.items() if choice is None]
    wholes = {benchmark.name for benchmark in unknown if benchmark is not None}
    return [
        column
        for column in columns
        if column.benchmark.capability in capabilities
        or (column.name, column.metric, column.filter) in chosen
        or column.benchmark.part_of in wholes
    ]


def _place(table: ScoreTable, name: tuple[str, ...], choice: ScoreChoice | None) -> int | None:
    """The column that a benchmark condition reads; that of the whole where only the parts were evaluated."""
    benchmark = catalogue().get(name[0])
    for place, column in enumerate(table.columns):
        if choice and (column.name, column.metric, column.filter) == (choice.benchmark, choice.metric, choice.filter):
            return place
        if choice is None and column.parts and benchmark is not None and column.name == benchmark.name:
            return place
    return None


def _reference(
    session: Session, project_ids: Collection[int] | None, table: ScoreTable, fields: Sequence[FieldCondition]
) -> tuple[Booleans, bool]:
    """The population: everything that is live, or of the size of model that the query names."""
    sizes = [condition for condition in fields if condition.field == SIZE_FIELD]
    if not sizes:
        return table.reference, False
    return table.reference & _rows_of(table, field_ids(session, project_ids, sizes)), True


def _rows_of(table: ScoreTable, ids: Sequence[int]) -> Booleans:
    return np.isin(table.checkpoints, np.array(ids, dtype=np.int64))


def _rankings(
    table: ScoreTable, conditions: Sequence[Condition], reference: Booleans, sized: bool
) -> tuple[dict[str, Ranking], bool]:
    """A population of one size that is too small is widened to all sizes."""
    names = list(dict.fromkeys(each.capability for each in conditions if isinstance(each, CapabilityCondition)))
    found = {name: rank_capability(table, name, reference) for name in names}
    if sized and any(ranking.basis == "absolute" for ranking in found.values()):
        return {name: rank_capability(table, name) for name in names}, False
    return found, sized


def _resolve(
    table: ScoreTable,
    conditions: Sequence[Condition],
    places: dict[tuple[str, ...], int | None],
    reference: Booleans,
) -> tuple[tuple[Condition, ...], tuple[str, ...]]:
    """Write 'strong gsm8k' as a comparison with the score that stands there; the names of which that cannot be said."""
    plain: list[Condition] = []
    unranked: list[str] = []
    for condition in conditions:
        if not isinstance(condition, StandingCondition):
            plain.append(condition)
        elif comparison := _standing(table, condition, places[_key(condition)], reference):
            plain.append(comparison)
        else:
            unranked.append(condition.benchmark)
    return tuple(plain), tuple(unranked)


def _standing(
    table: ScoreTable, condition: StandingCondition, place: int | None, reference: Booleans
) -> BenchmarkCondition | None:
    if place is None or table.columns[place].benchmark.direction is Direction.TARGET:
        return None
    column = table.columns[place]
    ranks = _ranks(table, place, reference)
    strong = condition.relation == STRONG
    with np.errstate(invalid="ignore"):
        there = np.flatnonzero(ranks >= condition.threshold if strong else ranks <= condition.threshold)
    if not len(there):
        return None
    nearest = there[np.argmin(ranks[there]) if strong else np.argmax(ranks[there])]
    upwards = strong == (column.benchmark.direction is Direction.HIGHER)
    return BenchmarkCondition(condition.benchmark, ">=" if upwards else "<=", float(table.values[nearest, place]))


def _ranks(table: ScoreTable, place: int, reference: Booleans) -> Floats:
    return midranks(oriented(table.values[:, place], table.columns[place]), table.runs, reference)


def _hold(
    table: ScoreTable,
    condition: ScoreCondition,
    rankings: dict[str, Ranking],
    places: dict[BenchmarkCondition, int | None],
    reference: Booleans,
) -> tuple[Floats, Booleans]:
    """(score, met) of each checkpoint for one condition."""
    if isinstance(condition, CapabilityCondition):
        standing = rankings[condition.capability].standing
        strong = condition.relation == STRONG
        with np.errstate(invalid="ignore"):
            met = standing >= condition.threshold if strong else standing <= condition.threshold
        return standing if strong else 1 - standing, met
    place = places[condition]
    if place is None:
        size = len(table.checkpoints)
        return np.full(size, np.nan), np.zeros(size, dtype=bool)
    return _compare(table.values[:, place], condition, table, reference)


def _compare(
    values: Floats, condition: BenchmarkCondition, table: ScoreTable, reference: Booleans
) -> tuple[Floats, Booleans]:
    """A comparison that is met scores 1; one that is not, by the share of checkpoints that lie between."""
    known = np.isfinite(values)
    with np.errstate(invalid="ignore"):
        met = known & _COMPARE[condition.relation](values, condition.threshold)
    asked = np.append(values, condition.threshold)
    ranks = midranks(asked, np.append(table.runs, -1), np.append(reference, False))
    near = np.minimum(1 - np.abs(ranks[:-1] - ranks[-1]), _UNMET_AT_MOST)
    near = np.zeros_like(near) if condition.relation == "!=" else np.nan_to_num(near)
    return np.where(known, np.where(met, 1.0, near), np.nan), met
