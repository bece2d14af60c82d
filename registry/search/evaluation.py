"""Conditions held against every checkpoint of some projects: how well each is met, and what is not known."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from registry.evals.capability import Ranking
from registry.evals.columns import Column
from registry.evals.percentiles import Floats
from registry.evals.population.against import Against
from registry.evals.population.keeping import population_of
from registry.evals.population.table import Part, Population
from registry.evals.references import Reference
from registry.filters import syntax
from registry.filters.left_out import LeftOut
from registry.filters.print import field_to_text
from registry.filters.score_names import NO_NAME
from registry.filters.scores import ScoreChoice, choose_scores, left_out_of
from registry.search.conditions import (
    STRONG,
    BenchmarkCondition,
    CapabilityCondition,
    Condition,
    FieldCondition,
    StandingCondition,
)
from registry.search.fields import Allowed, allowed_rows
from registry.search.holding import Held, HeldBenchmark, HeldByNobody, HeldCapability
from registry.search.native import rows_that_meet
from registry.types import Direction

ScoreCondition = CapabilityCondition | BenchmarkCondition
Table = Population | Part | Against
SIZE_FIELD: Final = "run.parameter_count"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """`scored` are the conditions on scores, and `held` what each says of the rows of the table.

    `conditions` are all of them, with 'strong gsm8k' written as the score that it means here; `unranked`: benchmarks
    of which no such score can be said; `unevaluated`: those of them that no checkpoint has. `sized`: the table holds
    the models of the size asked for, and no others.
    """

    table: Table
    population: Population
    conditions: tuple[Condition, ...]
    scored: tuple[ScoreCondition, ...]
    held: tuple[Held, ...]
    allowed: Allowed
    rankings: Mapping[str, Ranking]
    places: Mapping[BenchmarkCondition, int]
    resolved: dict[str, str | None]
    left_out: dict[str, tuple[LeftOut, ...]]
    unranked: tuple[str, ...]
    unevaluated: tuple[str, ...]
    sized: bool
    beyond: Mapping[str, int]  # benchmarks of which no score is as high, or as low, as was asked: how many there are

    def ranks(self, condition: BenchmarkCondition) -> Floats:
        """The percentiles in the column of a benchmark condition."""
        return self.table.ranks(self.places[condition])


def evaluate(
    session: Session,
    project_ids: Collection[int],
    conditions: Sequence[Condition],
    reference: Reference | None = None,
) -> Evaluation:
    """Hold the conditions against every live committed checkpoint that has a score they speak of.

    `reference`: published figures that percentiles are among, instead of the checkpoints themselves.

    Conditions on fields select; they are never met by halves. Raises InvalidFilter for a field that cannot be compared.
    """
    population = population_of(session, project_ids)
    capabilities = [each.capability for each in conditions if isinstance(each, CapabilityCondition)]
    choices = _choices(session, population, conditions)
    where = {name: place_of(population, name, choice) for name, choice in choices.items()}
    known = [place for place in where.values() if place is not None]
    population.load(session, [*population.places_of(capabilities), *known])
    fields = [condition for condition in conditions if isinstance(condition, FieldCondition)]
    table: Table
    table, sized = (population, False) if reference else _table(session, population, fields, capabilities)
    if reference is not None:
        table = Against(population, reference)
    left = [condition for condition in fields if not (sized and condition.field == SIZE_FIELD)]
    rankings = {name: table.ranking(name) for name in dict.fromkeys(capabilities)}
    plain, unranked, beyond = _resolve(table, conditions, where)
    scored = tuple(condition for condition in plain if isinstance(condition, CapabilityCondition | BenchmarkCondition))
    places = {
        each: place
        for each in scored
        if isinstance(each, BenchmarkCondition) and (place := where[_key(each)]) is not None
    }
    return Evaluation(
        table=table,
        population=population,
        conditions=plain,
        scored=scored,
        held=tuple(_hold(table, condition, rankings, places) for condition in scored),
        allowed=allowed_rows(session, table, population, left),
        rankings=rankings,
        places=places,
        resolved={_shown(name): _read_as(population, choice, where[name]) for name, choice in choices.items()},
        left_out=left_out_of(choices),
        unranked=unranked,
        unevaluated=tuple(
            each.benchmark for each in conditions if isinstance(each, StandingCondition) and where[_key(each)] is None
        ),
        sized=sized,
        beyond=beyond,
    )


def _choices(
    session: Session, population: Population, conditions: Sequence[Condition]
) -> dict[tuple[str, ...], ScoreChoice | None]:
    names = [_key(each) for each in conditions if isinstance(each, BenchmarkCondition | StandingCondition)]
    return choose_scores(session, population.project_ids, names, population.head.table)


def _key(condition: BenchmarkCondition | StandingCondition) -> tuple[str, ...]:
    """The name under which the filter language chooses a score."""
    if condition.metric is None:
        return (condition.benchmark,)
    rest = () if condition.filter is None else (condition.filter or NO_NAME,)
    return (condition.benchmark, condition.metric or NO_NAME, *rest)


def _shown(name: tuple[str, ...]) -> str:
    return field_to_text(syntax.Field(("scores", *name)))


def _read_as(population: Population, choice: ScoreChoice | None, place: int | None) -> str | None:
    if choice is not None:
        return choice.text
    if place is None:
        return None
    column = population.columns[place]
    return f"the mean of {column.parts} parts of {column.name} ({column.metric or NO_NAME})"


def place_of(population: Population, name: tuple[str, ...], choice: ScoreChoice | None) -> int | None:
    """The column that a benchmark condition reads; that of the whole where only the parts were evaluated."""
    benchmark = population.head.table.get(name[0])

    def is_meant(column: Column) -> bool:
        if choice is None:
            return bool(column.parts) and benchmark is not None and column.name == benchmark.name
        names = (choice.benchmark, choice.metric, choice.filter)
        return not column.parts and (column.name, column.metric, column.filter) == names

    return next((place for place, column in enumerate(population.columns) if is_meant(column)), None)


def _table(
    session: Session, population: Population, fields: Sequence[FieldCondition], capabilities: Sequence[str]
) -> tuple[Table, bool]:
    """The models of the size that the query names, ranked among themselves; all of them where those are too few."""
    sizes = [condition for condition in fields if condition.field == SIZE_FIELD]
    if not sizes:
        return population, False
    part = population.narrowed(tuple(sizes), rows_that_meet(session, population, sizes))
    if any(part.ranking(name).basis == "absolute" for name in capabilities):
        return population, False
    return part, True


def _resolve(
    table: Table, conditions: Sequence[Condition], where: Mapping[tuple[str, ...], int | None]
) -> tuple[tuple[Condition, ...], tuple[str, ...], dict[str, int]]:
    """(the conditions, with 'strong gsm8k' written as a comparison with the score that stands there, the names of which
    that cannot be said, those of which no score stands there, with how many there are)."""
    plain: list[Condition] = []
    unranked: list[str] = []
    beyond: dict[str, int] = {}
    for condition in conditions:
        place = where[_key(condition)] if isinstance(condition, StandingCondition) else None
        if not isinstance(condition, StandingCondition):
            plain.append(condition)
        elif place is None or (standing := _standing(table, condition, place)) is None:
            unranked.append(condition.benchmark)
        else:
            comparison, is_met = standing
            plain.append(comparison)
            if not is_met:
                beyond[condition.benchmark] = int(np.isfinite(table.ranks(place)).sum())
    return tuple(plain), tuple(unranked), beyond


def _standing(table: Table, condition: StandingCondition, place: int) -> tuple[BenchmarkCondition, bool] | None:
    """The comparison that a standing means here, and whether any score meets it.

    Where none does, as 'best' among nine, it is one beyond the first of them: nothing meets it, and that one is the
    nearest.
    """
    ranks = table.ranks(place)
    finite = np.flatnonzero(np.isfinite(ranks))
    if table.columns[place].benchmark.direction is Direction.TARGET or not len(finite):
        return None
    higher = table.columns[place].benchmark.direction is Direction.HIGHER
    strong, threshold = condition.relation == STRONG, condition.threshold
    if condition.by_value and not higher:  # the highest numbers are the worst
        strong, threshold = not strong, round(1 - threshold, 4)
    there = finite[ranks[finite] >= threshold if strong else ranks[finite] <= threshold]
    some = there if len(there) else finite
    nearest = some[np.argmin(ranks[some]) if strong == bool(len(there)) else np.argmax(ranks[some])]
    relation = (">" if strong == higher else "<") + ("=" if len(there) else "")
    value = float(table.values(place)[nearest])
    named = (condition.metric, condition.filter)
    return BenchmarkCondition(condition.benchmark, relation, value, *named), bool(len(there))


def _hold(
    table: Table,
    condition: ScoreCondition,
    rankings: Mapping[str, Ranking],
    places: Mapping[BenchmarkCondition, int],
) -> Held:
    if isinstance(condition, CapabilityCondition):
        return HeldCapability(condition, rankings[condition.capability])
    if condition not in places:
        return HeldByNobody(len(table.checkpoints))
    return HeldBenchmark(condition, table, places[condition])
