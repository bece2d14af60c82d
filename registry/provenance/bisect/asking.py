"""Start a search, take scores as they arrive, and say what to evaluate next."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from sqlalchemy.orm import Session

from registry import strict_json
from registry.checkpoints.detail import read_identities
from registry.checkpoints.rows import CheckpointIdentity
from registry.errors import FieldError, Invalid
from registry.evals.catalogue import catalogue
from registry.evals.known import nearest_capabilities
from registry.evals.normalise import orient
from registry.ids import from_text, to_text
from registry.models import Bisect, BisectObservation
from registry.provenance.bisect.measures import Measured, Measures, require_fall
from registry.provenance.bisect.paths import path_between, restorable
from registry.provenance.bisect.posterior import (
    SURE,
    Ask,
    Seen,
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
    observations_of,
    read_bisect,
)
from registry.wording import counted

BETTER = 0.95  # of the error before: less of a gain is the same evaluation once more
DISCORDANCE = 0.15  # assumed: the share of items whose answer changes between two neighbours


class NotOfThisSearch(Invalid):
    code = "bisect-other-checkpoint"
    title = "The checkpoint is not one of this search"


class UnknownCapability(Invalid):
    code = "bisect-unknown-capability"
    title = "There is no such capability"


@dataclass(frozen=True, slots=True)
class Gap:
    """Two neighbours among the checkpoints that can be asked, and the probability that it fell between them."""

    after: CheckpointIdentity
    before: CheckpointIdentity
    probability: float


@dataclass(frozen=True, slots=True)
class NextEvaluation:
    checkpoint: CheckpointIdentity
    items: int
    probability_bad: float
    uri: str | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A score that the search has taken. `delta` from the good one and `stderr` are on the common scale."""

    checkpoint: CheckpointIdentity
    value: float
    delta: float
    stderr: float
    items: int | None
    source: str  # posted, or recorded: it arrived as any score does
    probability_bad: float


@dataclass(frozen=True, slots=True)
class BisectAnswer:
    """`posterior`: every gap in order. `credible`: the places in it of the shortest stretch that holds 95 %.

    `left_out`: checkpoints on the way without a copy to evaluate and without a score. `why`: how it stands, in words.
    """

    id: int
    project_id: int
    good: CheckpointIdentity
    bad: CheckpointIdentity
    target: Target
    what: tuple[str, ...]
    drop: float
    discordance: float
    items: int
    next: NextEvaluation | None
    posterior: tuple[Gap, ...]
    credible: tuple[int, ...]
    evaluations: tuple[Evaluation, ...]
    left_out: int
    done: bool
    why: str

    @property
    def gap(self) -> Gap:
        """The likeliest one."""
        return max(self.posterior, key=lambda each: each.probability)


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
    fall = require_fall(measures.measured(bad_id), target)
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
    """Take a score measured for the search. Raises BisectNotFound, NotOfThisSearch."""
    row = read_bisect(session, bisect_id)
    if checkpoint_id not in _path(row):
        message = f"{to_text(checkpoint_id)} is not on the way from the good one to the bad one"
        raise NotOfThisSearch(f"That score tells nothing here: {message}.", errors=[FieldError("/checkpoint", message)])
    keep_observation(session, row, checkpoint_id, value=value, stderr=stderr, n_samples=n_samples, actor=actor)
    return get_bisect(session, bisect_id)


def _path(row: Bisect) -> list[int]:
    ids = [from_text(each) for each in strict_json.unpack(row.path)]
    return [each for each in ids if each is not None]


def get_bisect(session: Session, bisect_id: int) -> BisectAnswer:
    """How the search stands now, from its question, what was posted and what is recorded. Raises BisectNotFound."""
    row = read_bisect(session, bisect_id)
    path = _path(row)
    target = Target(row.benchmark, row.metric, row.filter, row.capability)
    measures = Measures(session, row.project_id, row.good_id, path[1:], target)
    fall = measures.measured(row.bad_id)
    what = fall.what if fall is not None else (row.benchmark or "", row.metric or "", row.filter or "")
    places = restorable(session, row.project_id, path)
    seen = _seen(session, row, path, measures, what)
    points = [each for each in path if each in (row.good_id, row.bad_id) or each in places or each in seen]
    at = {identity: place for place, identity in enumerate(points)}
    drop = row.good_level - row.bad_level
    gaps = gap_probabilities(len(points) - 1, drop, {at[key]: each for key, (each, _, _) in seen.items()})
    bad = bad_probabilities(gaps)
    items = items_for(row.drop_size, row.discordance)
    ask = next_ask(
        gaps,
        {at[key]: each for key, (each, _, _) in seen.items()},
        [at[each] for each in places if each in at],
        items,
        measures.most_items(what),
    )
    names = read_identities(session, points)
    posterior = tuple(
        Gap(names[points[place]], names[points[place + 1]], float(gaps[place])) for place in range(len(gaps))
    )
    evaluations = tuple(
        Evaluation(
            *(names[key], value, each.delta, each.stderr, each.items, source, float(bad[at[key]])),
        )
        for key, (each, value, source) in sorted(seen.items(), key=lambda item: at[item[0]])
    )
    upcoming = None
    if ask is not None:
        asked = points[ask.point]
        upcoming = NextEvaluation(names[asked], ask.items, ask.probability_bad, places.get(asked))
    credible = tuple(credible_set(gaps))
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
        why=_told(posterior, credible, ask, len(evaluations), len(path) - len(points)),
    )


_Taken = tuple[Seen, float, str]  # what it says, the value as measured, where it came from


def _seen(
    session: Session, row: Bisect, path: Sequence[int], measures: Measures, what: tuple[str, ...]
) -> Mapping[int, _Taken]:
    """For each point between the ends the score that counts: that with the smallest error, posted or recorded."""
    found: dict[int, _Taken] = {}
    for checkpoint_id in path[1:-1]:
        each = measures.measured(checkpoint_id, what)
        if each is not None:
            found[checkpoint_id] = (Seen(each.delta, each.stderr, each.items), each.value, "recorded")
    stretch, top = measures.span(what)
    asked = items_for(row.drop_size, row.discordance)
    whole = measures.most_items(what)
    for posted in observations_of(session, row):
        if posted.checkpoint_id in (row.good_id, row.bad_id):
            continue
        items = posted.n_samples or asked
        stderr = _stderr_of(posted, row, (stretch, top), items, whole)
        delta = _value_of(posted, measures, what) - row.good_level
        before = found.get(posted.checkpoint_id)
        if before is None or stderr < before[0].stderr * BETTER:
            found[posted.checkpoint_id] = (Seen(delta, stderr, items), posted.value, "posted")
        elif before[2] == "posted":
            found[posted.checkpoint_id] = (
                Seen(before[0].delta, before[0].stderr, before[0].items, repeated=True),
                *before[1:],
            )
    return found


def _value_of(posted: BisectObservation, measures: Measures, what: tuple[str, ...]) -> float:
    if measures.of_capability:
        return posted.value
    return orient(posted.value, None, measures.readings(*what), what[1]).value


def _stderr_of(
    posted: BisectObservation, row: Bisect, span: tuple[float, float], items: int, whole: int | None
) -> float:
    """That of the difference from the good one: as said, with the good one's own; else of n paired items of `whole`."""
    if posted.stderr is not None:
        return math.hypot(posted.stderr / span[0], row.good_stderr)
    variance = row.discordance / items + _of_a_part(posted.value / span[1], items, whole)
    return math.sqrt(variance) * span[1] / span[0]


def _of_a_part(share: float, items: int, whole: int | None) -> float:
    """The variance of asking a part only, the same items each time: the good one's level is that of all of them."""
    if whole is None or items >= whole or not 0 < share < 1:
        return 0.0
    return share * (1 - share) * (1 / items - 1 / whole)


def _told(posterior: Sequence[Gap], credible: Sequence[int], ask: Ask | None, evaluations: int, left_out: int) -> str:
    best = posterior[int(np.argmax([each.probability for each in posterior]))]
    between = f"between {_name(best.after)} and {_name(best.before)}"
    count = counted(evaluations, "evaluation")
    rest = f"; {left_out} more on the way {'has' if left_out == 1 else 'have'} no copy to evaluate" if left_out else ""
    if best.probability >= SURE:
        return f"it fell {between}, with a probability of {best.probability:.1%} after {count}{rest}"
    first, last = posterior[credible[0]].after, posterior[credible[-1]].before
    span = f"between {_name(first)} and {_name(last)} (95 %: {len(credible)} of {len(posterior)} gaps)"
    if ask is None:
        return f"it fell {span}; no further evaluation of these would tell more{rest}"
    return f"it fell {span} after {count}; the likeliest is {between}, {best.probability:.0%}{rest}"


def _name(checkpoint: CheckpointIdentity) -> str:
    return f"{checkpoint.run.name} step {checkpoint.step:,}"
