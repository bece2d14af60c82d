"""More like this checkpoint: the same strengths and weaknesses, by the distance between capability percentiles.

The distance is the mean over the capabilities that the given checkpoint was judged in. One in which the other was not
judged counts a third: that is how far two percentiles drawn at random lie apart on average, so a checkpoint of which
little is known comes neither first nor last for it. At least half must be shared.
"""

import math
from collections.abc import Collection
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.rows import CheckpointIdentity, read_rows
from registry.evals.capability import Ranking
from registry.evals.catalogue import catalogue
from registry.evals.copies import copies_around
from registry.evals.percentiles import Floats
from registry.evals.population.keeping import population_of
from registry.evals.population.table import Population as Table
from registry.filters.query import prepare
from registry.ids import to_text
from registry.models import Checkpoint
from registry.search.answers import (
    CapabilityPopulation,
    Evidence,
    Interpretation,
    Population,
    SearchAnswer,
    SearchResult,
)
from registry.search.conditions import LIKE, CapabilityCondition
from registry.search.contrast import best_first
from registry.search.evidence import benchmark_evidence
from registry.types import CheckpointState

UNSHARED: Final = 1 / 3
LEAST_SHARED: Final = 0.5


def more_like(session: Session, project_ids: Collection[int], checkpoint_id: int, *, limit: int) -> SearchAnswer:
    """The live committed checkpoints of its project that are most like it. Raises CheckpointNotFound.

    It and its lossless copies are no answer. `project_ids` bounds what the caller may see.
    """
    project_id = session.scalar(select(Checkpoint.project_id).where(Checkpoint.id == checkpoint_id))
    if project_id is None or project_id not in project_ids:
        raise CheckpointNotFound(f"There is no checkpoint {to_text(checkpoint_id)} that this token can read.")
    table = population_of(session, [project_id])
    row = table.row_of(checkpoint_id)
    rankings = _judged(session, table, row)
    if row is None or not rankings:
        return _nothing("It has no score of a capability that could be judged, so nothing can be like it.")
    distance, shared = _distances(rankings, row)
    same = {checkpoint_id}.union(*copies_around(session, project_id, [checkpoint_id]))
    asked = table.reference & (shared >= max(1, math.ceil(LEAST_SHARED * len(rankings))))
    asked &= ~np.isin(table.checkpoints, np.array(sorted(same), dtype=np.int64))
    rows = np.flatnonzero(asked)
    keys = [np.round(1 - distance[rows], 12), shared[rows]]
    places = [int(place) for place in rows[best_first(keys, table.checkpoints[rows], limit)]]
    identities = _identities(session, [int(table.checkpoints[place]) for place in places])
    results = tuple(
        SearchResult(
            identities[int(table.checkpoints[place])],
            round(float(1 - distance[place]), 6),
            False,
            tuple(_evidence(table, ranking, row, place) for ranking in rankings),
        )
        for place in places
        if int(table.checkpoints[place]) in identities
    )
    conditions = tuple(_condition(ranking, row) for ranking in rankings)
    warnings = tuple(_warnings(rankings, bool(results)))
    capabilities = tuple(CapabilityPopulation(each.capability, each.size, each.runs, each.basis) for each in rankings)
    population = Population(len(rows), capabilities, False, warnings)
    return SearchAnswer(Interpretation(conditions, (), {}), population, bool(results), results)


def _judged(session: Session, table: Table, row: int | None) -> list[Ranking]:
    """The rankings in which the checkpoint at a row stands somewhere, in the table's order of capabilities."""
    if row is None:
        return []
    names = [each.name for each in catalogue().capabilities if each.name != "lm"]
    table.load(session, table.places_of(names))
    rankings = [table.ranking(name) for name in names]
    return [ranking for ranking in rankings if math.isfinite(ranking.standing[row])]


def _distances(rankings: list[Ranking], row: int) -> tuple[Floats, Floats]:
    """(the mean distance of each checkpoint, in how many capabilities both were judged)."""
    total = np.zeros(len(rankings[0].standing))
    shared = np.zeros(len(total))
    for ranking in rankings:
        apart = np.abs(ranking.standing - ranking.standing[row])
        known = np.isfinite(apart)
        total += np.where(known, apart, UNSHARED)
        shared += known
    return total / len(rankings), shared


def _condition(ranking: Ranking, row: int) -> CapabilityCondition:
    return CapabilityCondition(ranking.capability, LIKE, round(float(ranking.standing[row]), 6))


def _evidence(table: Table, ranking: Ranking, row: int, place: int) -> Evidence:
    stands = ranking.at(table, place)
    judged = math.isfinite(ranking.standing[place])
    return Evidence(
        _condition(ranking, row),
        ranking.capability,
        round(stands.percentile, 6) if math.isfinite(stands.percentile) else None,
        round(stands.composite, 6) if math.isfinite(stands.composite) else None,
        round(stands.coverage, 4),
        ranking.basis,
        judged,
        tuple(benchmark_evidence(table, place, column) for column in stands.chosen) if judged else (),
    )


def _warnings(rankings: list[Ranking], found: bool) -> list[str]:
    small = [ranking.capability for ranking in rankings if ranking.basis == "absolute"]
    warnings = []
    if small:
        names = ", ".join(small)
        warnings.append(f"Too few checkpoints for percentiles of {names}: chance-normalised scores were compared.")
    if not found:
        warnings.append("No other checkpoint of the project was judged in half of what this one was judged in.")
    return warnings


def _nothing(reason: str) -> SearchAnswer:
    return SearchAnswer(Interpretation((), (), {}), Population(0, (), False, (reason,)), False, ())


def _identities(session: Session, ids: list[int]) -> dict[int, CheckpointIdentity]:
    rows = read_rows(session, prepare(session, project_ids=None), ids)
    committed = CheckpointState.COMMITTED.value
    return {row.checkpoint.id: row.checkpoint for row in rows if row.state == committed and not row.superseded}
