"""More like this checkpoint: the same strengths and weaknesses, by the distance between capability percentiles.

The distance is the mean over the capabilities that the given checkpoint was judged in. One in which the other was not
judged counts a third: that is how far two percentiles drawn at random lie apart on average, so a checkpoint of which
little is known comes neither first nor last for it. At least half must be shared.
"""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.errors import CheckpointNotFound
from registry.checkpoints.rows import CheckpointIdentity, read_rows
from registry.evals.capability import Ranking
from registry.evals.catalogue import catalogue
from registry.evals.copies import copies_around
from registry.evals.percentiles import Integers
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
from registry.search.contrast import Key, best_first
from registry.search.distance import Distances
from registry.search.evidence import capability_evidence
from registry.types import CheckpointState

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
    distances = Distances(rankings, row)
    shared = distances.shared
    same = {checkpoint_id}.union(*copies_around(session, project_id, [checkpoint_id]))
    asked = table.reference & (shared >= max(1, math.ceil(LEAST_SHARED * len(rankings))))
    asked[[at for each in same if (at := table.row_of(each)) is not None]] = False
    keys: list[Key] = [lambda rows: np.round(1 - distances.mean(rows), 12), lambda rows: shared[rows]]
    places = best_first(distances.candidates(asked, limit), keys, table.checkpoints, limit)
    identities = _identities(session, table.checkpoints[places].tolist())
    evidence = _evidence(table, rankings, row, places)
    results = tuple(
        SearchResult(identities[number], round(1 - distance, 6), False, said)
        for number, distance, said in zip(
            table.checkpoints[places].tolist(), distances.mean(places).tolist(), evidence, strict=True
        )
        if number in identities
    )
    conditions = tuple(_condition(ranking, row) for ranking in rankings)
    warnings = tuple(_warnings(rankings, bool(results)))
    capabilities = tuple(CapabilityPopulation(each.capability, each.size, each.runs, each.basis) for each in rankings)
    population = Population(int(np.count_nonzero(asked)), capabilities, False, warnings)
    return SearchAnswer(Interpretation(conditions, (), {}), population, bool(results), results)


def _judged(session: Session, table: Table, row: int | None) -> list[Ranking]:
    """The rankings in which the checkpoint at a row stands somewhere, in the table's order of capabilities."""
    if row is None:
        return []
    names = [each.name for each in catalogue().capabilities if each.name != "lm"]
    table.load(session, table.places_of(names))
    rankings = [table.ranking(name) for name in names]
    return [ranking for ranking in rankings if math.isfinite(ranking.standing[row])]


def _condition(ranking: Ranking, row: int) -> CapabilityCondition:
    return CapabilityCondition(ranking.capability, LIKE, round(float(ranking.standing[row]), 6))


def _evidence(table: Table, rankings: list[Ranking], row: int, places: Integers) -> list[tuple[Evidence, ...]]:
    """For each of these places what it is like in every capability that the checkpoint at a row was judged in."""
    said: list[list[Evidence]] = [[] for _ in places]
    for ranking in rankings:
        condition, judged = _condition(ranking, row), ranking.is_ranked[places].tolist()
        for number, (place, stands) in enumerate(zip(places.tolist(), ranking.at_rows(table, places), strict=True)):
            known = stands if judged[number] else replace(stands, chosen=())
            said[number].append(capability_evidence(table, ranking, condition, place, known, judged[number]))
    return [tuple(each) for each in said]


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
