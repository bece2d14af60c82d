"""From an evaluation to an answer: order, evidence, population, and what nobody evaluated."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointRow, read_rows
from registry.evals.catalogue import catalogue
from registry.evals.percentiles import MINIMUM_CHECKPOINTS, MINIMUM_RUNS, Floats, Integers
from registry.evals.population.against import Against
from registry.evals.population.keeping import population_of
from registry.evals.references import PREFIX, Reference
from registry.filters.query import prepare
from registry.search.answers import CapabilityPopulation, Interpretation, Population, SearchAnswer, SearchResult
from registry.search.conditions import BenchmarkCondition, CapabilityCondition, FieldCondition, span_of
from registry.search.contrast import Key, best_first
from registry.search.evaluation import Evaluation, evaluate
from registry.search.evidence import evidence_of
from registry.search.fields import BATCH, MAX_CHECKED, checked, checked_all, count_fields, field_ids
from registry.search.holding import HeldBenchmark
from registry.search.ordering import in_order, order_warnings
from registry.search.pool import Pool, pool_of
from registry.search.reading import MATCH, NEWEST, Reading
from registry.types import CheckpointState, Direction
from registry.wording import counted, was


def answer(
    session: Session,
    project_ids: Collection[int],
    reading: Reading,
    limit: int,
    reference: Reference | None = None,
) -> SearchAnswer:
    """Answer a reading. Where no condition speaks of scores, the newest that the fields allow are the answer."""
    limit = min(limit, reading.at_most or limit)
    if all(isinstance(condition, FieldCondition) for condition in reading.conditions):
        return _by_fields(session, project_ids, reading, limit)
    found = evaluate(session, project_ids, reading.conditions, reference)
    pool, shown = _shown(session, found, reading.order, limit, wanted=reading.at_most or 1)
    incomplete = shown[:0] if len(shown) else _incomplete(session, found, limit)
    ids = found.table.checkpoints
    rows_of = _live(session, ids[np.concatenate([shown, incomplete])].tolist())
    live = np.fromiter(rows_of, np.int64, len(rows_of))
    shown, incomplete = (rows[np.isin(ids[rows], live)] for rows in (shown, incomplete))
    met = pool.strict and bool(len(shown))
    some_meet = met or bool(pool_of(found.held, found.allowed.rows, strict=True).size)
    results = _results(found, shown, rows_of, pool.on_front(shown), pool.least(shown).tolist())
    others = _results(found, incomplete, rows_of, [False] * len(incomplete), [0.0] * len(incomplete))
    return SearchAnswer(
        Interpretation(
            found.conditions,
            (*reading.unparsed, *found.unranked),
            found.resolved,
            reading.order,
            found.left_out,
            reading.at_most,
        ),
        _with_warnings(
            _population(found, reference),
            order_warnings(reading, [rows_of[each] for each in ids[shown].tolist()], met=met, some_meet=some_meet),
        ),
        met,
        _with_same_run(results),
        others,
    )


def _shown(session: Session, found: Evaluation, order: str, limit: int, *, wanted: int) -> tuple[Pool, Integers]:
    """Those that meet everything, else the nearest; the rows of the first `limit` of them.

    Fewer than are `wanted` by name ('top 3') are no answer: the nearest are shown with them.
    Fields that are dear to check are checked for the best candidates only. Where those give no answer, the nearest
    may not be shown yet, for somebody farther down may meet everything: then every checkpoint is checked.
    """
    none = np.empty(0, dtype=np.int64)
    if found.unranked:  # nothing can be strong at what has no scores
        return Pool((), np.zeros(len(found.table.checkpoints), dtype=bool), False), none
    allowed = found.allowed
    for last in (False, True):
        if last:
            allowed = checked_all(session, found.table, allowed, found.population.project_ids)
        for strict in (True, False):
            pool = pool_of(found.held, allowed.rows, strict=strict)
            shown, exhausted = _first(session, found, pool, allowed.rest, order, limit)
            if len(shown) >= limit or (exhausted and len(shown) >= (wanted if strict else 1)):
                return pool, shown
            if not exhausted:
                break
        if not allowed.rest:
            break
    return pool, shown


def _first(
    session: Session, found: Evaluation, pool: Pool, rest: Sequence[FieldCondition], order: str, limit: int
) -> tuple[Integers, bool]:
    """The pool's first that meet the rest as well, and whether all of the pool was looked at."""
    if not rest:
        return _best(session, found, pool, order, limit), True
    shown = np.empty(0, dtype=np.int64)
    for batch in _batches(session, found, pool, order):
        shown = np.concatenate([shown, checked(session, found.table, batch, rest, found.population.project_ids)])
        if len(shown) >= limit:
            break
    return shown[:limit], pool.size <= MAX_CHECKED


def _batches(session: Session, found: Evaluation, pool: Pool, order: str) -> Iterator[Integers]:
    """The best that are checked at most, a batch at a time: the first is often all that is asked for."""
    yield _best(session, found, pool, order, BATCH)
    candidates = _best(session, found, pool, order, MAX_CHECKED)
    for start in range(BATCH, len(candidates), BATCH):
        yield candidates[start : start + BATCH]


def _best(session: Session, found: Evaluation, pool: Pool, order: str, most: int) -> Integers:
    """The first rows of the pool: by the least and the mean of their scores, then by how far comparisons are met.

    Who asks for the newest, or for the lowest loss, gets those that meet everything in that order; the nearest are
    always in the order of nearness.
    """
    if order != MATCH and pool.strict:
        return in_order(session, found, np.flatnonzero(pool.there), order, most, match=_rounded(pool.least))
    margins = partial(_margins, found)
    keys: list[Key] = [margins] if pool.is_level else [_rounded(pool.least), _rounded(pool.mean), margins]
    return best_first(pool.candidates(most), keys, found.table.checkpoints, most)


def _rounded(score: Key) -> Key:
    return lambda rows: np.round(score(rows), 12)


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
    order = NEWEST if reading.order == MATCH else reading.order
    rows = list(_live(session, field_ids(session, project_ids, fields, first=limit, order=order)).values())
    results = [SearchResult(row.checkpoint, 1.0, True, (), loss=row.loss) for row in rows]
    return SearchAnswer(
        Interpretation(reading.conditions, reading.unparsed, {}, order, at_most=reading.at_most),
        Population(size, warnings=order_warnings(reading, rows, met=bool(rows), some_meet=size > 0)),
        bool(results),
        _with_same_run(results),
    )


def _margins(found: Evaluation, places: Integers) -> Floats:
    """How far benchmark conditions are met: 'gsm8k above .5' shows the highest first, 'below .5' the lowest."""
    margins = np.zeros(len(places))
    for condition, column in found.places.items():
        upwards = {">": 1.0, ">=": 1.0, "<": -1.0, "<=": -1.0}.get(condition.relation)
        if upwards is not None:
            ranks = found.ranks(condition)[places]
            ranks[np.isnan(ranks)] = 0.0
            lower = found.table.columns[column].benchmark.direction is Direction.LOWER
            margins += ranks * (-upwards if lower else upwards)
    return margins


def _incomplete(session: Session, found: Evaluation, limit: int) -> Integers:
    """Checkpoints that meet every condition they were evaluated on, at least one, and lack a score for another."""
    if found.unranked or not found.held:
        return np.empty(0, dtype=np.int64)
    some = checked_all(session, found.table, found.allowed, found.population.project_ids).rows.copy()
    known = [held.known for held in found.held]
    some &= np.logical_or.reduce(known) & ~np.logical_and.reduce(known)
    for held in found.held:
        some &= held.met | ~held.known

    def count(rows: Integers) -> Integers:
        return np.asarray(np.sum([each[rows] for each in known], axis=0))

    def least(rows: Integers) -> Floats:
        scores = np.array([held.scores(rows) for held in found.held])
        return np.asarray(np.where(np.isfinite(scores), scores, 1.0).min(axis=0, initial=1.0))

    return best_first(np.flatnonzero(some), [count, least], found.table.checkpoints, limit)


def _results(
    found: Evaluation,
    rows: Integers,
    rows_of: Mapping[int, CheckpointRow],
    front: Sequence[bool],
    scores: Sequence[float],
) -> tuple[SearchResult, ...]:
    shown = [rows_of[number] for number in found.table.checkpoints[rows].tolist()]
    each = zip(shown, scores, front, evidence_of(found, rows), strict=True)
    return tuple(
        SearchResult(row.checkpoint, round(score, 6), label, evidence, loss=row.loss)
        for row, score, label, evidence in each
    )


def _live(session: Session, ids: Sequence[int]) -> dict[int, CheckpointRow]:
    """Those that are live as the database says now, in order: a kept population may be two seconds old."""
    rows = read_rows(session, prepare(session, project_ids=None), ids)
    committed = CheckpointState.COMMITTED.value
    return {row.checkpoint.id: row for row in rows if row.state == committed and not row.superseded}


def _with_warnings(population: Population, warnings: tuple[str, ...]) -> Population:
    return replace(population, warnings=(*population.warnings, *warnings))


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
    for condition, held in zip(found.scored, found.held, strict=True):
        if isinstance(condition, BenchmarkCondition) and condition in found.places:
            masks.append(held.known & table.counted(found.places[condition]))
    return int(np.count_nonzero(np.logical_or.reduce(masks))) if masks else 0


def _warnings(found: Evaluation) -> list[str]:
    warnings = []
    for condition, held in zip(found.scored, found.held, strict=True):
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
        elif not held.known.any():
            warnings.append(f"No score of {condition.benchmark} is a finite number: none is ranked.")
        if isinstance(held, HeldBenchmark) and held.odd:
            scale = span_of(found.table.columns[held.place].benchmark.scale)
            odd = f"{counted(held.odd, 'score')} of {held.condition.benchmark}"
            off = "is off its scale" if held.odd == 1 else "are off its scale"
            warnings.append(f"{odd} {off} and not counted: it {scale}.")
    for name in found.unranked:
        told = "it was not evaluated, which is neither strong nor weak"
        odd = f"No score of {name} can be ranked: none is finite, or the best is in the middle. Compare by number."
        warnings.append(f"No checkpoint has a score of {name}: {told}." if name in found.unevaluated else odd)
    warnings += [
        f"{name}: {counted(count, 'score')} {'is' if count == 1 else 'are'} too few, or too alike, for one to stand as "
        "far apart as was asked; the nearest are shown."
        for name, count in found.beyond.items()
    ]
    return warnings
