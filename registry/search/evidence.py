"""What an answer rests on: for each condition, the scores of a checkpoint and where they stand."""

import math

from registry.evals.population.table import Ranked
from registry.search.answers import BenchmarkEvidence, Evidence
from registry.search.conditions import CapabilityCondition
from registry.search.evaluation import Evaluation


def evidence_of(found: Evaluation, number: int, row: int) -> Evidence:
    """The evidence that the checkpoint at a row of the table has for one of the conditions on scores."""
    condition, table = found.scored[number], found.table
    met = bool(found.held[number].met[row])
    if isinstance(condition, CapabilityCondition):
        ranking = found.rankings[condition.capability]
        stands = ranking.at(table, row)
        return Evidence(
            condition,
            condition.capability,
            _or_none(stands.percentile),
            _or_none(stands.composite),
            round(stands.coverage, 4),
            ranking.basis,
            met,
            tuple(benchmark_evidence(table, row, place) for place in stands.chosen),
        )
    place = found.places.get(condition)
    if place is None or not math.isfinite(table.values(place)[row]):
        return Evidence(condition, None, None, None, 0.0, "absolute", met, ())
    shown = benchmark_evidence(table, row, place)
    capability = table.columns[place].benchmark.capability
    return Evidence(condition, capability, shown.percentile, None, 1.0, "absolute", met, (shown,))


def benchmark_evidence(table: Ranked, row: int, place: int) -> BenchmarkEvidence:
    """A score of the checkpoint at a row, and where it stands in its column."""
    shown = table.columns[place]
    value, rank, via = float(table.values(place)[row]), float(table.ranks(place)[row]), table.via(place)
    copied = via is not None and bool(via[row])
    return BenchmarkEvidence(shown.name, shown.metric, shown.filter, value, _or_none(rank), shown.parts, copied)


def _or_none(number: float) -> float | None:
    return round(float(number), 6) if math.isfinite(number) else None
