"""From an evaluation to an answer: order, evidence, population, and what nobody evaluated."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity, read_rows
from registry.evals.catalogue import catalogue
from registry.evals.percentiles import MINIMUM_CHECKPOINTS, MINIMUM_RUNS, Floats, Integers
from registry.evals.population.against import Against
from registry.evals.population.keeping import population_of
from registry.evals.population.table import Part
from registry.evals.references import PREFIX, Reference
from registry.filters.query import prepare
from registry.search.answers import CapabilityPopulation, Interpretation, Population, SearchAnswer, SearchResult
from registry.search.conditions import CapabilityCondition, FieldCondition
from registry.search.contrast import best_first, on_front
from registry.search.evaluation import Evaluation, all_of, evaluate
from registry.search.evidence import evidence_of
from registry.search.fields import BATCH, MAX_CHECKED, checked, checked_all, count_fields, field_ids
from registry.search.reading import MATCH, NEWEST, OLDEST, Reading
from registry.types import CheckpointState, Direction
from registry.wording import counted, was


@dataclass(frozen=True, eq=False)
class _Pool:
    """The rows that may be shown: `places` of the table, and their scores, (n, conditions)."""

    places: Integers
    scores: Floats
    strict: bool


def answer(
    session: Session,
    project_ids: Collection[int],
    reading: Reading,
    limit: int,
    reference: Reference | None = None,
) -> SearchAnswer:
    """Answer a reading. Where no condition speaks of scores, the newest that the fields allow are the answer."""
    if all(isinstance(condition, FieldCondition) for condition in reading.conditions):
        return _by_fields(session, project_ids, reading, limit)
    found = evaluate(session, project_ids, reading.conditions, reference)
    pool, shown = _shown(session, found, reading.order, limit)
    incomplete = [] if len(shown) else _incomplete(session, found, limit)
    places = [int(place) for place in (*shown, *incomplete)]
    identities = _identities(session, [int(found.table.checkpoints[place]) for place in places])
    shown = np.array([place for place in shown if int(found.table.checkpoints[place]) in identities], dtype=np.int64)
    incomplete = [place for place in incomplete if int(found.table.checkpoints[place]) in identities]
    at = [int(np.flatnonzero(pool.places == place)[0]) for place in shown]
    results = [
        _result(found, int(place), identities, front, float(pool.scores[row].min(initial=1.0)))
        for place, row, front in zip(shown, at, on_front(pool.scores, at), strict=True)
    ]
    others = [_result(found, place, identities, False, 0.0) for place in incomplete]
    return SearchAnswer(
        Interpretation(
            found.conditions, (*reading.unparsed, *found.unranked), found.resolved, reading.order, found.left_out
        ),
        _population(found, reference),
        pool.strict and bool(len(shown)),
        _with_same_run(results),
        tuple(others),
    )


def _shown(session: Session, found: Evaluation, order: str, limit: int) -> tuple[_Pool, Integers]:
    """Those that meet everything, else the nearest; the places of the first `limit` of them.

    Fields that are dear to check are checked for the best candidates only. Where those give no answer, the nearest
    may not be shown yet, for somebody farther down may meet everything: then every checkpoint is checked.
    """
    none = np.empty(0, dtype=np.int64)
    if found.unranked:  # nothing can be strong at what has no scores
        return _Pool(none, np.empty((0, len(found.held))), False), none
    allowed = found.allowed
    for last in (False, True):
        if last:
            allowed = checked_all(session, found.table, allowed, found.population.project_ids)
        for strict in (True, False):
            masks = [held.met if strict else held.known for held in found.held]
            rows = np.flatnonzero(all_of([allowed.rows, *masks], len(allowed.rows)))
            pool = _Pool(rows, np.array([held.scores(rows) for held in found.held]).T, strict)
            shown, exhausted = _first(session, found, pool, allowed.rest, order, limit)
            if len(shown) >= limit or (exhausted and len(shown)):
                return pool, shown
            if not exhausted:
                break
        if not allowed.rest:
            break
    return pool, shown


def _first(
    session: Session, found: Evaluation, pool: _Pool, rest: Sequence[FieldCondition], order: str, limit: int
) -> tuple[Integers, bool]:
    """The places of the pool's first that meet the rest as well, and whether all of the pool was looked at."""
    if not rest:
        return _best(found, pool, order, limit), True
    candidates = _best(found, pool, order, MAX_CHECKED)
    shown = np.empty(0, dtype=np.int64)
    for start in range(0, len(candidates), BATCH):
        batch = candidates[start : start + BATCH]
        shown = np.concatenate([shown, checked(session, found.table, batch, rest, found.population.project_ids)])
        if len(shown) >= limit:
            break
    return shown[:limit], len(pool.places) <= MAX_CHECKED


def _best(found: Evaluation, pool: _Pool, order: str, most: int) -> Integers:
    """The places of the first rows of the pool: who cannot be among them by the least of their scores is left early."""
    if len(pool.places) > most and not (order != MATCH and pool.strict):
        least = np.round(pool.scores.min(axis=1, initial=1.0), 12)
        near = np.flatnonzero(least >= np.partition(least, len(least) - most)[len(least) - most])
        pool = _Pool(pool.places[near], pool.scores[near], pool.strict)
    keys = _keys(found, pool, order)
    return pool.places[best_first(keys, found.table.checkpoints[pool.places], most)]


def _keys(found: Evaluation, pool: _Pool, order: str) -> list[Floats]:
    """What decides the order, the largest first: the least and the mean of the scores, then how far they are met.

    Who asks for the newest gets those that meet everything by time; the nearest are always in the order of nearness.
    """
    if order != MATCH and pool.strict:
        saved = found.population.rows.saved_at
        own = saved[found.table.rows] if isinstance(found.table, Part) else saved
        times = own[pool.places].astype(np.float64)
        return [times if order == NEWEST else -times]
    least, mean = pool.scores.min(axis=1, initial=1.0), pool.scores.mean(axis=1)
    return [np.round(least, 12), np.round(mean, 12), _margins(found, pool.places)]


def percentiles_of(session: Session, project_ids: Collection[int], capability: str) -> Mapping[int, float] | None:
    """The percentile of every evaluated checkpoint in a capability; None where the population is too small."""
    known = catalogue().capability(capability)
    if known is None:
        return None
    population = population_of(session, project_ids)
    population.load(session, population.places_of([known.name]))
    ranking = population.ranking(known.name)
    if ranking.basis != "percentile":
        return None
    places = np.flatnonzero(np.isfinite(ranking.standing))
    return dict(zip(population.checkpoints[places].tolist(), ranking.standing[places].tolist(), strict=True))


def _by_fields(session: Session, project_ids: Collection[int], reading: Reading, limit: int) -> SearchAnswer:
    fields = [condition for condition in reading.conditions if isinstance(condition, FieldCondition)]
    size = count_fields(session, project_ids, fields)
    shown = field_ids(session, project_ids, fields, newest=limit, oldest=reading.order == OLDEST)
    identities = _identities(session, shown)
    results = [SearchResult(identities[number], 1.0, True, ()) for number in shown if number in identities]
    order = OLDEST if reading.order == OLDEST else NEWEST
    return SearchAnswer(
        Interpretation(reading.conditions, reading.unparsed, {}, order),
        Population(size),
        bool(results),
        _with_same_run(results),
    )


def _margins(found: Evaluation, places: Integers) -> Floats:
    """How far benchmark conditions are met: 'gsm8k above .5' shows the highest first, 'below .5' the lowest."""
    margins = np.zeros(len(places))
    for condition, column in found.places.items():
        lower = found.table.columns[column].benchmark.direction is Direction.LOWER
        upwards = {">": 1.0, ">=": 1.0, "<": -1.0, "<=": -1.0}.get(condition.relation, 0.0)
        margins += np.nan_to_num(found.ranks(condition)[places]) * (-upwards if lower else upwards)
    return margins


def _incomplete(session: Session, found: Evaluation, limit: int) -> list[int]:
    """Checkpoints that meet every condition they were evaluated on, at least one, and lack a score for another."""
    allowed = checked_all(session, found.table, found.allowed, found.population.project_ids).rows
    known = [held.known for held in found.held]
    some = allowed & np.logical_or.reduce(known) & ~np.logical_and.reduce(known)
    some &= all_of([held.met | ~held.known for held in found.held], len(allowed))
    if found.unranked:
        some[:] = False
    places = np.flatnonzero(some)
    scores = np.column_stack([held.scores(places) for held in found.held]) if found.held else np.empty((0, 0))
    count = np.isfinite(scores).sum(axis=1).astype(np.float64)
    least = np.where(np.isfinite(scores), scores, 1.0).min(axis=1, initial=1.0)
    return [int(place) for place in places[best_first([count, least], found.table.checkpoints[places], limit)]]


def _result(
    found: Evaluation, place: int, identities: Mapping[int, CheckpointIdentity], front: bool, score: float
) -> SearchResult:
    checkpoint = identities[int(found.table.checkpoints[place])]
    evidence = tuple(evidence_of(found, at, place) for at in range(len(found.scored)))
    return SearchResult(checkpoint, round(score, 6), front, evidence)


def _identities(session: Session, ids: Sequence[int]) -> dict[int, CheckpointIdentity]:
    """Those that are live as the database says now: a kept population may be two seconds old."""
    rows = read_rows(session, prepare(session, project_ids=None), ids)
    committed = CheckpointState.COMMITTED.value
    return {row.checkpoint.id: row.checkpoint for row in rows if row.state == committed and not row.superseded}


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


def _population(found: Evaluation, reference: Reference | None) -> Population:
    size = _size(found) if reference is None else max((each.size for each in found.rankings.values()), default=0)
    capabilities = tuple(
        CapabilityPopulation(name, ranking.size, ranking.runs, ranking.basis)
        for name, ranking in found.rankings.items()
    )
    warnings = _warnings(found)
    if reference is not None:
        warnings.insert(0, f"Percentiles are among {reference.words}: another harness or prompt moves figures.")
        warnings += [
            f"{name} has no figures in the reference: it could not be ranked there."
            for name, ranking in found.rankings.items()
            if ranking.is_evaluated and ranking.basis == "absolute"
        ]
    named = None if reference is None else PREFIX + reference.source.name
    return Population(size, capabilities, found.sized, tuple(warnings), named)


def _size(found: Evaluation) -> int:
    """How many checkpoints have a score of their own that the question speaks of."""
    masks = [ranking.members for ranking in found.rankings.values()]
    table = found.table
    masks += [np.isfinite(table.values(place)) & table.counted(place) for place in found.places.values()]
    return int(np.count_nonzero(np.logical_or.reduce(masks))) if masks else 0


def _warnings(found: Evaluation) -> list[str]:
    warnings = []
    for condition in found.scored:
        if isinstance(condition, CapabilityCondition):
            ranking = found.rankings[condition.capability]
            if not ranking.is_evaluated:
                warnings.append(f"No checkpoint was evaluated on {condition.capability}: that is unknown, not weak.")
            elif ranking.basis == "absolute" and not isinstance(found.table, Against):
                warnings.append(
                    f"{condition.capability}: {counted(ranking.size, 'checkpoint')} of {counted(ranking.runs, 'run')} "
                    f"{'is' if ranking.size == 1 else 'are'} too few for percentiles, which take "
                    f"{MINIMUM_CHECKPOINTS} of {MINIMUM_RUNS} runs; chance-normalised scores were compared."
                )
            if too_little := int(np.count_nonzero(ranking.members & ~ranking.is_ranked)):
                warnings.append(
                    f"{too_little} of {counted(ranking.size, 'checkpoint')} {was(too_little)} evaluated on too few of "
                    f"the benchmarks of {condition.capability} that others here have, and "
                    f"{'is' if too_little == 1 else 'are'} not ranked: name a project or a run to rank its checkpoints "
                    "among themselves."
                )
        elif condition not in found.places:
            warnings.append(f"No checkpoint has a score of {condition.benchmark}: that is unknown, not low.")
        elif not np.isfinite(found.table.values(found.places[condition])).any():
            warnings.append(f"No score of {condition.benchmark} is a finite number: none is ranked.")
    warnings += [f"No score says where 'strong' or 'weak' begins for {name}." for name in found.unranked]
    return warnings
