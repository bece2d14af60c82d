"""The scores that a search takes: what is recorded of a checkpoint on the way, and what was posted for the search.

Of several for one checkpoint the most exact counts. Of posted ones as exact as each other that is the newest: so a
wrong one is corrected by posting the right one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sqlalchemy.orm import Session

from registry.evals.normalise import orient
from registry.models import Bisect, BisectObservation
from registry.provenance.bisect.measures import Measures
from registry.provenance.bisect.posterior import Seen, items_for
from registry.provenance.bisect.states import observations_of

OF_AN_END: Final = (
    "an end of the search stands for what is recorded of it: record a new evaluation of it as a score of the checkpoint"
)
BETTER = 0.95  # of the error before: less of a gain is the same evaluation once more


@dataclass(frozen=True, slots=True)
class Taken:
    """The score that counts for a checkpoint. `posted`: its row, where it was posted for the search."""

    seen: Seen
    value: float  # as measured
    posted: BisectObservation | None = None

    @property
    def source(self) -> str:
        return "recorded" if self.posted is None else "posted"


@dataclass(frozen=True, slots=True)
class Rejected:
    """A kept score that cannot count: it is of an end, or outside the benchmark's scale and never rescaled by guess."""

    checkpoint_id: int
    value: float
    source: str
    why: str


def evidence(
    session: Session, row: Bisect, path: Sequence[int], measures: Measures, what: tuple[str, ...]
) -> tuple[dict[int, Taken], list[Rejected]]:
    """For each point between the ends the score that counts; and the scores that cannot."""
    taken: dict[int, Taken] = {}
    rejected: list[Rejected] = []
    for checkpoint_id in path[1:-1]:
        each = measures.measured(checkpoint_id, what)
        if each is not None:
            taken[checkpoint_id] = Taken(Seen(each.delta, each.stderr, each.items), each.value)
        elif wrong := measures.recorded_off_scale(checkpoint_id, what):
            rejected.append(Rejected(checkpoint_id, wrong[0], "recorded", wrong[1]))
    for posted in observations_of(session, row):
        at_an_end = posted.checkpoint_id in (row.good_id, row.bad_id)
        why = OF_AN_END if at_an_end else measures.off_scale(posted.value, what)
        if why:
            rejected.append(Rejected(posted.checkpoint_id, posted.value, "posted", why))
            continue
        taken[posted.checkpoint_id] = _of_two(taken.get(posted.checkpoint_id), _posted(posted, row, measures, what))
    return taken, rejected


def _of_two(before: Taken | None, now: Taken) -> Taken:
    """Which of a score and a later posted one counts."""
    if before is None or now.seen.stderr < before.seen.stderr * BETTER:
        return now
    if before.posted is None:
        return before
    counts = now if _as_exact(before, now) else before
    return replace(counts, seen=replace(counts.seen, repeated=True))


def _as_exact(before: Taken, now: Taken) -> bool:
    """By what was said of the two; an error reckoned from items depends on the score itself, which may be wrong."""
    assert before.posted is not None
    assert now.posted is not None
    if (before.posted.stderr, now.posted.stderr) == (None, None):
        return now.seen.items == before.seen.items
    return now.seen.stderr <= before.seen.stderr / BETTER


def _posted(posted: BisectObservation, row: Bisect, measures: Measures, what: tuple[str, ...]) -> Taken:
    items = posted.n_samples or items_for(row.drop_size, row.discordance)
    stderr = _stderr_of(posted, row, measures.span(what), items, measures.most_items(what))
    return Taken(Seen(_value_of(posted, measures, what) - row.good_level, stderr, items), posted.value, posted)


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
