"""From an evaluation to an answer: order, evidence, population, and what nobody evaluated."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity, read_rows
from registry.evals.capability import rank_capability
from registry.evals.catalogue import catalogue
from registry.evals.percentiles import MINIMUM_CHECKPOINTS, MINIMUM_RUNS, Booleans, Floats
from registry.evals.score_table import read_columns, read_table
from registry.filters.query import prepare
from registry.search.answers import CapabilityPopulation, Interpretation, Population, SearchAnswer, SearchResult
from registry.search.conditions import CapabilityCondition, FieldCondition
from registry.search.contrast import on_front, order_by_contrast
from registry.search.evaluation import Evaluation, evaluate, field_ids
from registry.search.evidence import evidence_of
from registry.search.parser import Reading
from registry.types import Direction


def answer(session: Session, project_ids: Collection[int] | None, reading: Reading, limit: int) -> SearchAnswer:
    """Answer a reading. Where no condition speaks of scores, the newest that the fields allow are the answer."""
    if all(isinstance(condition, FieldCondition) for condition in reading.conditions):
        return _by_fields(session, project_ids, reading, limit)
    found = evaluate(session, project_ids, reading.conditions)
    allowed = found.allowed & found.table.reference
    if found.unranked:  # nothing can be strong at what has no scores
        allowed = np.zeros_like(allowed)
    scores = np.where(allowed[:, None], found.scores, np.nan)
    order = order_by_contrast(scores, found.met & allowed[:, None], found.table.checkpoints, _margins(found))
    places = [int(place) for place in order.places[:limit] if allowed[place]]  # no condition left: nothing excludes
    incomplete = _incomplete(found, allowed)[: limit if not places else 0]
    identities = _identities(session, [int(found.table.checkpoints[place]) for place in (*places, *incomplete)])
    fronts = on_front(scores, places)
    results = [
        _result(found, place, identities, front, float(order.score[place]))
        for place, front in zip(places, fronts, strict=True)
    ]
    others = [_result(found, place, identities, False, 0.0) for place in incomplete]
    return SearchAnswer(
        Interpretation(found.conditions, (*reading.unparsed, *found.unranked), found.resolved),
        _population(found),
        order.strict and bool(places),
        _with_same_run(results),
        tuple(others),
    )


def percentiles_of(
    session: Session, project_ids: Collection[int] | None, capability: str
) -> Mapping[int, float] | None:
    """The percentile of every evaluated checkpoint in a capability; None where the population is too small."""
    known = catalogue().capability(capability)
    if known is None:
        return None
    columns, metric_ids = read_columns(session, project_ids)
    wanted = [column for column in columns if column.benchmark.capability == known.name]
    ranking = rank_capability(table := read_table(session, project_ids, wanted, columns, metric_ids), known.name)
    if ranking.basis != "percentile":
        return None
    places = np.flatnonzero(np.isfinite(ranking.percentile))
    return {int(table.checkpoints[place]): float(ranking.percentile[place]) for place in places}


def _by_fields(session: Session, project_ids: Collection[int] | None, reading: Reading, limit: int) -> SearchAnswer:
    fields = [condition for condition in reading.conditions if isinstance(condition, FieldCondition)]
    ids = field_ids(session, project_ids, fields)
    shown = field_ids(session, project_ids, fields, newest=limit)
    identities = _identities(session, shown)
    results = [SearchResult(identities[number], 1.0, True, ()) for number in shown if number in identities]
    return SearchAnswer(
        Interpretation(reading.conditions, reading.unparsed, {}),
        Population(len(ids)),
        bool(results),
        _with_same_run(results),
    )


def _margins(found: Evaluation) -> Floats:
    """How far benchmark conditions are met: 'gsm8k above .5' shows the highest first, 'below .5' the lowest."""
    margins = np.zeros(len(found.table.checkpoints))
    for condition, ranks in found.ranks.items():
        lower = found.table.columns[found.places[condition]].benchmark.direction is Direction.LOWER
        upwards = {">": 1.0, ">=": 1.0, "<": -1.0, "<=": -1.0}.get(condition.relation, 0.0)
        margins += np.nan_to_num(ranks) * (-upwards if lower else upwards)
    return margins


def _incomplete(found: Evaluation, allowed: Booleans) -> list[int]:
    """Checkpoints that meet every condition they were evaluated on, at least one, and lack a score for another."""
    known = np.isfinite(found.scores)
    some = allowed & known.any(axis=1) & ~known.all(axis=1) & (found.met | ~known).all(axis=1)
    score = np.where(known, found.scores, 1.0).min(axis=1, initial=1.0)
    places = np.flatnonzero(some)
    order = np.lexsort((found.table.checkpoints[places], -score[places], -known[places].sum(axis=1)))
    return [int(place) for place in places[order]]


def _result(
    found: Evaluation, place: int, identities: Mapping[int, CheckpointIdentity], front: bool, score: float
) -> SearchResult:
    checkpoint = identities[int(found.table.checkpoints[place])]
    evidence = tuple(evidence_of(found, condition, place) for condition in found.scored)
    return SearchResult(checkpoint, round(score, 6), front, evidence)


def _identities(session: Session, ids: Sequence[int]) -> dict[int, CheckpointIdentity]:
    rows = read_rows(session, prepare(session, project_ids=None), ids)
    return {row.checkpoint.id: row.checkpoint for row in rows}


def _with_same_run(results: Sequence[SearchResult]) -> tuple[SearchResult, ...]:
    members: dict[int, list[int]] = defaultdict(list)
    for result in results:
        members[result.checkpoint.run.id].append(result.checkpoint.id)
    return tuple(
        replace(
            result,
            same_run=tuple(other for other in members[result.checkpoint.run.id] if other != result.checkpoint.id),
        )
        for result in results
    )


def _population(found: Evaluation) -> Population:
    table = found.table
    places = list(found.places.values())
    members = np.asarray((np.isfinite(table.values[:, places]) & ~table.via[:, places]).any(axis=1) & table.reference)
    for ranking in found.rankings.values():
        members |= ranking.members
    capabilities = tuple(
        CapabilityPopulation(name, ranking.size, ranking.runs, ranking.basis)
        for name, ranking in found.rankings.items()
    )
    return Population(int(members.sum()), capabilities, found.sized, tuple(_warnings(found)))


def _warnings(found: Evaluation) -> list[str]:
    warnings = []
    for condition in found.scored:
        if isinstance(condition, CapabilityCondition):
            ranking = found.rankings[condition.capability]
            if not ranking.evaluated.any():
                warnings.append(f"No checkpoint was evaluated on {condition.capability}: that is unknown, not weak.")
            elif ranking.basis == "absolute":
                warnings.append(
                    f"{condition.capability}: {ranking.size} checkpoints of {ranking.runs} runs are too few for "
                    f"percentiles ({MINIMUM_CHECKPOINTS} of {MINIMUM_RUNS}); chance-normalised scores were compared."
                )
        elif condition not in found.places:
            warnings.append(f"No checkpoint has a score of {condition.benchmark}: that is unknown, not low.")
    warnings += [f"No score says where 'strong' or 'weak' begins for {name}." for name in found.unranked]
    return warnings
