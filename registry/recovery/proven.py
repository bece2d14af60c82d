"""A fall that the scores over the steps cannot establish alone: a bisect found it, or two checkpoints prove it.

The scan of `registry.recovery.onset` needs four evaluated checkpoints. A search that somebody ran between two of them
knows more, from evaluations made for it; and of fewer than four, the newest held against the best earlier one (the
test that a comparison makes, paired where single results are kept) may be worse beyond doubt. Where the fall lies
between is a probability over the gaps, as in a search (`registry.provenance.bisect.posterior`).
"""

from dataclasses import replace

import numpy as np
from sqlalchemy.orm import Session

from registry.provenance.bisect import Target
from registry.provenance.bisect.posterior import Seen, bad_probabilities, credible_set, gap_probabilities
from registry.recovery.bisected import bisects_on, from_bisects
from registry.recovery.falls import Fall, Found, Path, compared, fallen
from registry.recovery.onset import LEAST_POINTS, Onset
from registry.recovery.watched import Watched, scanned_points, spread_over


def find_proven(session: Session, path: Path, watched: Watched, onset: Onset | None) -> Found | None:
    """What a bisect or a comparison tells of what is watched; None where there is neither."""
    return from_bisects(session, path, watched, bisects_on(session, path)) or _from_comparison(
        session, path, watched, onset
    )


def _from_comparison(session: Session, path: Path, watched: Watched, onset: Onset | None) -> Found | None:
    """Of too few points for a scan, the newest against the best earlier one."""
    steps, values, errors = scanned_points(watched, path.steps, path.ids)
    if not 2 <= len(steps) < LEAST_POINTS:
        return None
    best, watch = int(np.argmax(values[:-1])), watched.watch
    ids = [_id_at(path, watched, int(steps[place])) for place in (best, -1)]
    fall = compared(session, ids[0], ids[1], Target(watch.benchmark, capability=watch.capability))
    if fall is None:
        return None
    if not fall.is_proven:
        return _unproven(onset, int(steps[best]), int(steps[-1]), fall)
    spread = np.hypot(errors[best], errors)
    between = {
        place: Seen(float(values[best + place] - values[best]), float(spread[best + place]), None)
        for place in range(1, len(steps) - best - 1)
    }
    gaps = gap_probabilities(len(steps) - 1 - best, -fall.delta, between)
    chances = np.concatenate((np.zeros(best), bad_probabilities(gaps)))
    inside = credible_set(gaps)
    after, by = int(steps[best + inside[0]]), int(steps[best + inside[-1] + 1])
    told = f"Step {steps[-1]} is worse than step {steps[best]} by {fall.words}"
    found = fallen(steps, chances, fall, (after, by), f"{told}. {_where(path, after, by)}", "comparison")
    return found, spread_over(path.steps, steps, chances)


def _id_at(path: Path, watched: Watched, step: int) -> int:
    """The path's checkpoint of a step that has the figure."""
    here = path.ids[path.steps == step]
    return int(here[~np.isnan(watched.along(here)[0])][0])


def _where(path: Path, after: int, by: int) -> str:
    if not path.has_between(after, by):
        return f"It fell between steps {after} and {by}."
    return f"Where between steps {after} and {by} is not known: {path.command(after, by)} says which to evaluate."


def _unproven(onset: Onset | None, best: int, newest: int, fall: Fall) -> Found | None:
    if onset is None:
        return None
    told = f"Held against step {best}, step {newest} is not proven to be worse: it lies lower by {fall.words}."
    if fall.delta >= 0:
        told = f"Step {newest} does not score below step {best}."
    return replace(onset, sentence=f"{onset.sentence} {told}"), None
