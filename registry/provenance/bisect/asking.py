"""Start a search, take scores as they arrive, and say what to evaluate next."""

import math
from dataclasses import replace

from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import read_identities
from registry.errors import FieldError, Invalid
from registry.evals.catalogue import catalogue
from registry.evals.known import nearest_capabilities
from registry.evals.normalise import orient
from registry.ids import from_text, to_text
from registry.models import Bisect
from registry.provenance.bisect.answers import BisectAnswer, Evaluation, Gap, NextEvaluation, Skipped
from registry.provenance.bisect.evidence import evidence
from registry.provenance.bisect.measures import Measured, Measures, NothingFell
from registry.provenance.bisect.paths import path_between, restorable
from registry.provenance.bisect.posterior import (
    bad_probabilities,
    credible_set,
    gap_probabilities,
    items_for,
    next_ask,
)
from registry.provenance.bisect.states import (
    Levels,
    Target,
    find_same,
    keep_bisect,
    keep_observation,
    read_bisect,
    target_of,
)
from registry.provenance.bisect.words import doubt, is_proven, rest, told

DISCORDANCE = 0.15  # assumed: the share of items whose answer changes between two neighbours


class NotOfThisSearch(Invalid):
    code = "bisect-other-checkpoint"
    title = "The checkpoint is not one of this search"


class OffScale(Invalid):
    code = "bisect-off-scale"
    title = "The score lies outside the benchmark's scale"


class UnknownCapability(Invalid):
    code = "bisect-unknown-capability"
    title = "There is no such capability"


def start_bisect(
    session: Session,
    project_id: int,
    good_id: int,
    bad_id: int,
    target: Target,
    *,
    discordance: float | None = None,
    drop: float | None = None,
    actor: str,
) -> tuple[BisectAnswer, bool]:
    """(the search, whether it is new). Asked again it goes on where it was.

    `drop`: a fall on the benchmark's own scale (a fraction of it) to size evaluations for, where the measured one is
    not meant. Raises UnknownCapability, NotOnOnePath, NothingFell.
    """
    target = _as_the_table_says(target)
    known = find_same(session, project_id, (good_id, bad_id), target)
    if known is not None:
        return get_bisect(session, known), False
    if good_id == bad_id:
        message = "the good one and the bad one are the same checkpoint"
        raise NotOfThisSearch(f"Nothing lies between: {message}.", errors=[FieldError("/bad", message)])
    path = path_between(session, project_id, good_id, bad_id)
    measures = Measures(session, project_id, good_id, [bad_id], target)
    fall = measures.require_fall(bad_id)
    good = measures.measured(good_id, fall.what)
    good_value = _oriented(measures, fall, good.value if good is not None else fall.value)
    stretch, top = measures.span(fall.what)
    size = drop if drop is not None else abs(fall.delta) * stretch / top
    levels = Levels(
        good_value,
        good_value + fall.delta,
        fall.stderr / math.sqrt(2),
        fall.stderr / math.sqrt(2),
        min(1.0, size),
        discordance if discordance is not None else DISCORDANCE,
    )
    identity, is_new = keep_bisect(session, project_id, (good_id, bad_id), target, levels, path, actor)
    return get_bisect(session, identity), is_new


def _as_the_table_says(target: Target) -> Target:
    """So that 数学 and math are one search. Raises UnknownCapability."""
    if target.capability is None:
        return target
    known = catalogue().capability(target.capability)
    if known is None:
        message = f"there is no capability {target.capability[:60]!r}. {nearest_capabilities(target.capability)}"
        raise UnknownCapability(f"Nothing can be searched: {message}", errors=[FieldError("/capability", message)])
    return replace(target, capability=known.name)


def _oriented(measures: Measures, fall: Measured, value: float) -> float:
    """A value as measured, on the common scale; a capability's mean is there already."""
    if measures.of_capability:
        return value
    return orient(value, None, measures.readings(*fall.what), fall.what[1]).value


def observe(
    session: Session,
    bisect_id: int,
    checkpoint_id: int,
    *,
    value: float,
    stderr: float | None = None,
    n_samples: int | None = None,
    actor: str,
) -> BisectAnswer:
    """Take a score measured for the search. Raises BisectNotFound, NotOfThisSearch, OffScale."""
    row = read_bisect(session, bisect_id)
    if checkpoint_id not in _path(row):
        message = f"{to_text(checkpoint_id)} is not on the way from the good one to the bad one"
        raise NotOfThisSearch(f"That score tells nothing here: {message}.", errors=[FieldError("/checkpoint", message)])
    target = target_of(row)
    measures = Measures(session, row.project_id, row.good_id, [row.bad_id], target)
    message = measures.off_scale(value, _what(row, measures))
    if message:
        raise OffScale(f"That is no score of {target.name}: {message}.", errors=[FieldError("/value", message)])
    stderr = stderr or None  # zero is no error of a score: it is reckoned from the items, as where none is said
    keep_observation(session, row, checkpoint_id, value=value, stderr=stderr, n_samples=n_samples, actor=actor)
    return get_bisect(session, bisect_id)


def _path(row: Bisect) -> list[int]:
    ids = [from_text(each) for each in strict_json.unpack(row.path)]
    return [each for each in ids if each is not None]


def get_bisect(session: Session, bisect_id: int) -> BisectAnswer:
    """How the search stands now, from its question, what was posted and what is recorded. Raises BisectNotFound."""
    row = read_bisect(session, bisect_id)
    path = _path(row)
    target = target_of(row)
    measures = Measures(session, row.project_id, row.good_id, path[1:], target)
    what = _what(row, measures)
    places = restorable(session, row.project_id, path)
    taken, skipped = evidence(session, row, path, measures, what)
    seen = {key: each.seen for key, each in taken.items()}
    points = [each for each in path if each in (row.good_id, row.bad_id) or each in places or each in seen]
    at = {identity: place for place, identity in enumerate(points)}
    drop = row.good_level - row.bad_level
    gaps = gap_probabilities(len(points) - 1, drop, {at[key]: each for key, each in seen.items()})
    bad = bad_probabilities(gaps)
    items = items_for(row.drop_size, row.discordance)
    gone = _premise_gone(measures, row.bad_id)
    ask = None
    if not gone:
        ask = next_ask(
            gaps,
            {at[key]: each for key, each in seen.items()},
            [at[each] for each in places if each in at],
            items,
            measures.most_items(what),
        )
    names = read_identities(session, [*points, *(each.checkpoint_id for each in skipped)])
    posterior = tuple(
        Gap(names[points[place]], names[points[place + 1]], float(gaps[place])) for place in range(len(gaps))
    )
    evaluations = tuple(
        Evaluation(
            *(names[key], each.value, each.seen.delta, each.seen.stderr, each.seen.items, each.source),
            float(bad[at[key]]),
        )
        for key, each in sorted(taken.items(), key=lambda item: at[item[0]])
    )
    upcoming = None
    if ask is not None:
        asked = points[ask.point]
        upcoming = NextEvaluation(names[asked], ask.items, ask.probability_bad, places.get(asked))
    credible = tuple(credible_set(gaps))
    fall = measures.measured(row.bad_id, what)
    why = told(posterior, credible, ask, len(evaluations), rest(len(path) - len(points), skipped))
    return BisectAnswer(
        id=row.id,
        project_id=row.project_id,
        good=names[row.good_id],
        bad=names[row.bad_id],
        target=target,
        what=what,
        drop=row.drop_size,
        discordance=row.discordance,
        items=items,
        next=upcoming,
        posterior=posterior,
        credible=credible,
        evaluations=evaluations,
        left_out=len(path) - len(points),
        done=ask is None,
        why=gone or f"{doubt(fall, has_points=measures.has_points(what))}{why}",
        skipped=tuple(Skipped(names[each.checkpoint_id], each.value, each.source, each.why) for each in skipped),
        is_proven=not gone and is_proven(fall),
        whole=measures.most_items(what),
    )


def _premise_gone(measures: Measures, bad_id: int) -> str:
    """Why there is nothing to search for any more, where an end was evaluated again since; empty where there is."""
    try:
        measures.require_fall(bad_id)
    except NothingFell as error:
        return f"the search has lost its ground: as recorded now, {error.errors[0].message}"
    return ""


def _what(row: Bisect, measures: Measures) -> tuple[str, ...]:
    """Which metric the search compares: that in which the two ends differ, while both have a score."""
    fall = measures.measured(row.bad_id)
    return fall.what if fall is not None else (row.benchmark or "", row.metric or "", row.filter or "")
