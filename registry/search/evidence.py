"""What an answer rests on: for each condition, the scores of a checkpoint and where they stand."""

import math

from registry.search.answers import BenchmarkEvidence, Evidence
from registry.search.conditions import CapabilityCondition
from registry.search.evaluation import Evaluation, ScoreCondition


def evidence_of(found: Evaluation, condition: ScoreCondition, place: int) -> Evidence:
    """The evidence that the checkpoint at a place of the table has for one condition."""
    met = bool(found.met[place, found.scored.index(condition)])
    if isinstance(condition, CapabilityCondition):
        ranking = found.rankings[condition.capability]
        columns = [int(column) for column in ranking.chosen[place] if column >= 0]
        return Evidence(
            condition,
            condition.capability,
            _or_none(ranking.percentile[place]),
            _or_none(ranking.composite[place]),
            round(float(ranking.coverage[place]), 4),
            ranking.basis,
            met,
            tuple(_benchmark(found, place, column, ranking.ranks[place, column]) for column in columns),
        )
    column = found.places.get(condition)
    if column is None or not math.isfinite(found.table.values[place, column]):
        return Evidence(condition, None, None, None, 0.0, "absolute", met, ())
    rank = float(found.ranks[condition][place])
    shown = (_benchmark(found, place, column, rank),)
    capability = found.table.columns[column].benchmark.capability
    return Evidence(condition, capability, _or_none(rank), None, 1.0, "absolute", met, shown)


def _benchmark(found: Evaluation, place: int, column: int, rank: float) -> BenchmarkEvidence:
    shown = found.table.columns[column]
    value = float(found.table.values[place, column])
    via = bool(found.table.via[place, column])
    return BenchmarkEvidence(shown.name, shown.metric, shown.filter, value, _or_none(rank), shown.parts, via)


def _or_none(number: float) -> float | None:
    return round(float(number), 6) if math.isfinite(number) else None
