"""What an answer rests on: for each condition, the scores of a checkpoint and where they stand."""

import math

from registry.evals.capability import Place, Ranking
from registry.evals.percentiles import Integers
from registry.evals.population.table import Ranked
from registry.search.answers import BenchmarkEvidence, Evidence
from registry.search.conditions import BenchmarkCondition, CapabilityCondition
from registry.search.evaluation import Evaluation


def evidence_of(found: Evaluation, rows: Integers) -> list[tuple[Evidence, ...]]:
    """For each of these rows of the table the evidence that the checkpoint has for each condition on scores."""
    said = [_of_condition(found, number, rows) for number in range(len(found.scored))]
    return [tuple(evidence[at] for evidence in said) for at in range(len(rows))]


def _of_condition(found: Evaluation, number: int, rows: Integers) -> list[Evidence]:
    condition, met = found.scored[number], found.held[number].met[rows].tolist()
    if not isinstance(condition, CapabilityCondition):
        return [_of_benchmark(found, condition, row, there) for row, there in zip(rows.tolist(), met, strict=True)]
    ranking = found.rankings[condition.capability]
    stands = ranking.at_rows(found.table, rows)
    return [
        capability_evidence(found.table, ranking, condition, row, where, there)
        for row, where, there in zip(rows.tolist(), stands, met, strict=True)
    ]


def capability_evidence(
    table: Ranked, ranking: Ranking, condition: CapabilityCondition, row: int, stands: Place, met: bool
) -> Evidence:
    """Where the checkpoint at a row stands in a capability, and the scores that this rests on."""
    return Evidence(
        condition,
        ranking.capability,
        _or_none(stands.percentile),
        _or_none(stands.composite),
        round(stands.coverage, 4),
        ranking.basis,
        met,
        tuple(benchmark_evidence(table, row, place) for place in stands.chosen),
    )


def _of_benchmark(found: Evaluation, condition: BenchmarkCondition, row: int, met: bool) -> Evidence:
    table, place = found.table, found.places.get(condition)
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
