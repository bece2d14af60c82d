"""A fall that a bisect found: a search that somebody ran between two checkpoints, from evaluations made for it."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue
from registry.evals.percentiles import Floats, Integers
from registry.models import Bisect, Checkpoint
from registry.provenance.bisect import BisectAnswer, Target, get_bisect
from registry.provenance.bisect.posterior import bad_probabilities
from registry.recovery.falls import Fall, Found, Path, compared, fallen, is_same
from registry.recovery.watched import Watched, scanned_points, spread_over
from registry.wording import counted

MOST_BISECTS: Final = 5  # the newest of those that are about what is watched

COLUMNS = (
    *(Bisect.id, Bisect.good_id, Bisect.bad_id),
    *(Bisect.benchmark, Bisect.metric, Bisect.filter, Bisect.capability),
)


def bisects_on(session: Session, path: Path) -> Sequence[Any]:
    """The searches of which both ends lie on the path, the newest first."""
    good = (Checkpoint.project_id == Bisect.project_id) & (Checkpoint.id == Bisect.good_id)
    query = select(*COLUMNS).join(Checkpoint, good).where(Bisect.project_id == path.project_id)
    rows: Sequence[Any] = session.execute(
        query.where(Checkpoint.run_id.in_(sorted(path.names))).order_by(Bisect.id.desc())
    ).all()
    if not rows:
        return rows
    here = set(path.ids.tolist())
    return [row for row in rows if row.good_id in here and row.bad_id in here]


def from_bisects(session: Session, path: Path, watched: Watched, rows: Sequence[Any]) -> Found | None:
    """The first of the searches that is about what is watched and whose two ends prove a fall."""
    about = [row for row in rows if _is_about(row, watched)]
    for row in about[:MOST_BISECTS]:
        target = Target(row.benchmark, row.metric, row.filter, row.capability)
        fall = compared(session, row.good_id, row.bad_id, target)
        if fall is not None and fall.is_proven and _stayed_low(path, watched, row.good_id, row.bad_id):
            return _of_bisect(path, watched, get_bisect(session, row.id), fall)
    return None


def _is_about(row: Any, watched: Watched) -> bool:
    """A search for the capability itself; or for a benchmark that is watched, or that belongs to the capability."""
    watch = watched.watch
    if watch.benchmark is not None:
        return row.benchmark is not None and is_same(row.benchmark, watch.benchmark)
    known = catalogue().capability(watch.capability or "")
    capability = known.name if known is not None else watch.capability
    if row.benchmark is None:
        return bool(row.capability == capability)
    entry = catalogue().get(row.benchmark)
    return row.benchmark in watched.made_of or (entry is not None and entry.capability == capability)


def _stayed_low(path: Path, watched: Watched, good_id: int, bad_id: int) -> bool:
    """Whether the newest figure is not nearer to the good end again, so far as all three are known."""
    steps, values, _ = scanned_points(watched, path.steps, path.ids)
    good, bad = (float(each) for each in watched.along(np.array([good_id, bad_id]))[0])
    beyond = len(steps) > 0 and steps[-1] > path.steps[path.ids == bad_id][0]
    return not beyond or not values[-1] > (good + bad) / 2  # NaN: unknown


def _of_bisect(path: Path, watched: Watched, found: BisectAnswer, fall: Fall) -> Found | None:
    """None where the way goes over runs that count their steps anew, so that a step is no place on it."""
    gaps = np.array([gap.probability for gap in found.posterior])
    points = [found.good, *(gap.before for gap in found.posterior)]
    steps, chances = np.array([each.step for each in points], np.int64), bad_probabilities(gaps)
    if not (np.diff(steps) > 0).all():
        return None
    first, last = (found.posterior[found.credible[place]] for place in (0, -1))
    after, by = first.after.step, last.before.step
    chance = float(gaps[list(found.credible)].sum())
    evaluated = counted(len(found.evaluations), "evaluation")
    told = (
        f"A bisect of {found.target.name} found that it fell between steps {after} and {by}, with a probability of "
        f"{min(chance, 0.999):.1%} after {evaluated}: step {found.bad.step} is worse than step {found.good.step} by "
        f"{fall.words}."
    )
    if found.next is not None:
        on = path.command(found.good.step, found.bad.step)
        told += f" It is not finished: {on} goes on, with step {found.next.checkpoint.step}."
    onset = fallen(steps, chances, fall, (after, by), told, "bisect", found.id)
    return onset, spread_over(path.steps, *_until_newest(path, watched, steps, chances))


def _until_newest(path: Path, watched: Watched, steps: Integers, chances: Floats) -> tuple[Integers, Floats]:
    """With what was evaluated after the bad end, and is as low: bad as well."""
    newest = scanned_points(watched, path.steps, path.ids)[0][-1:]
    if not len(newest) or newest[0] <= steps[-1]:
        return steps, chances
    return np.append(steps, newest), np.append(chances, 1.0)
