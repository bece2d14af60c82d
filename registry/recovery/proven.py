"""A fall that the scores over the steps cannot establish alone: a bisect found it, or two checkpoints prove it.

The scan of `registry.recovery.onset` needs four evaluated checkpoints. A search that somebody ran between two of them
knows more, from evaluations made for it; and of fewer than four, the newest held against the best earlier one (the
test that a comparison makes, paired where single results are kept) may be worse beyond doubt. Where the fall lies
between is a probability over the gaps, as in a search (`registry.provenance.bisect.posterior`).
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.catalogue import catalogue, key_of
from registry.evals.percentiles import Floats, Integers
from registry.evals.significance import REGRESSED
from registry.models import Bisect, Checkpoint
from registry.provenance.bisect import BisectAnswer, Target, get_bisect
from registry.provenance.bisect.posterior import Seen, bad_probabilities, credible_set, gap_probabilities
from registry.provenance.compare import score_changes
from registry.recovery.onset import LEAST_POINTS, SAFE, Onset
from registry.recovery.watched import Watched, scanned_points, spread_over
from registry.wording import counted

MOST_BISECTS: Final = 5  # the newest of those that are about what is watched

Found = tuple[Onset, Floats | None]  # what was found, and P(already bad) along the path


@dataclass(frozen=True, slots=True, eq=False)
class Path:
    """The live path by step. `runs`: the run of each; `names`: 'project/run' by its id."""

    project_id: int
    ids: Integers
    steps: Integers
    runs: Integers
    names: Mapping[int, str]

    def command(self, after: int, by: int) -> str:
        ends = [
            f"{self.names[int(self.runs[place])]}@{step}"
            for step, place in ((step, int(np.searchsorted(self.steps, step))) for step in (after, by))
        ]
        return f"`cairn why {' '.join(map(shlex.quote, ends))} --bisect`"

    def has_between(self, after: int, by: int) -> bool:
        return bool(((self.steps > after) & (self.steps < by)).any())


@dataclass(frozen=True, slots=True)
class Fall:
    """The newer of two checkpoints against the older, on the common scale, where below 0 is worse."""

    delta: float
    stderr: float
    q_value: float
    is_proven: bool

    @property
    def words(self) -> str:
        """How far it is below."""
        return f"{100 * -self.delta:.1f} ± {100 * self.stderr:.1f} points (q = {self.q_value:.2g})"


def find_proven(session: Session, path: Path, watched: Watched, onset: Onset | None) -> Found | None:
    """What a bisect or a comparison tells of what is watched; None where there is neither."""
    return from_bisects(session, path, watched, bisects_on(session, path)) or _from_comparison(
        session, path, watched, onset
    )


def compared(session: Session, baseline_id: int, candidate_id: int, target: Target) -> Fall | None:
    """The two checkpoints in what is meant, as a comparison of all their scores says; None where it cannot."""
    changes = score_changes(session, baseline_id, candidate_id)
    if target.capability is not None:
        known = catalogue().capability(target.capability)
        name = known.name if known is not None else target.capability
        composite = next((each for each in changes.capabilities if each.capability == name), None)
        if composite is None:
            return None
        return Fall(composite.delta, composite.stderr, composite.q_value, composite.verdict == REGRESSED)
    for row in changes.scores:  # the surest fall first
        if row.normalised is None or row.normalised_stderr is None or row.q_value is None:
            continue
        if _is_meant(row.benchmark, row.metric, row.filter, target):
            return Fall(row.normalised, row.normalised_stderr, row.q_value, row.verdict == REGRESSED)
    return None


def _is_meant(benchmark: str, metric: str, filter: str, target: Target) -> bool:
    named = target.benchmark is not None and _is_same(benchmark, target.benchmark)
    return named and target.metric in (None, metric) and target.filter in (None, filter)


def _is_same(benchmark: str, other: str) -> bool:
    entry = catalogue().get(other)
    return key_of(benchmark) in {key_of(other), key_of(entry.name) if entry is not None else ""}


# ---- two checkpoints


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
    found = _onset(steps, chances, fall, (after, by), f"{told}. {_where(path, after, by)}", "comparison")
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


def _onset(
    steps: Integers, chances: Floats, fall: Fall, gap: tuple[int, int], told: str, by: str, bisect_id: int | None = None
) -> Onset:
    good = int(steps[int(np.flatnonzero(chances <= SAFE)[-1])])
    return Onset(
        steps=tuple(steps.tolist()),
        p_no_change=float("nan"),
        p_bad=tuple(chances.tolist()),
        is_established=True,
        shape="unclear",
        drop=-fall.delta,
        drop_stderr=fall.stderr,
        after_step=gap[0],
        by_step=gap[1],
        last_known_good=good,
        sentence=f"{told} Step {good} is the last known good.",
        found_by=by,
        q_value=fall.q_value,
        bisect_id=bisect_id,
    )


# ---- bisects

_COLUMNS = (
    *(Bisect.id, Bisect.good_id, Bisect.bad_id),
    *(Bisect.benchmark, Bisect.metric, Bisect.filter, Bisect.capability),
)


def bisects_on(session: Session, path: Path) -> Sequence[Any]:
    """The searches of which both ends lie on the path, the newest first."""
    good = (Checkpoint.project_id == Bisect.project_id) & (Checkpoint.id == Bisect.good_id)
    query = select(*_COLUMNS).join(Checkpoint, good).where(Bisect.project_id == path.project_id)
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
        return row.benchmark is not None and _is_same(row.benchmark, watch.benchmark)
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
    onset = _onset(steps, chances, fall, (after, by), told, "bisect", found.id)
    return onset, spread_over(path.steps, *_until_newest(path, watched, steps, chances))


def _until_newest(path: Path, watched: Watched, steps: Integers, chances: Floats) -> tuple[Integers, Floats]:
    """With what was evaluated after the bad end, and is as low: bad as well."""
    newest = scanned_points(watched, path.steps, path.ids)[0][-1:]
    if not len(newest) or newest[0] <= steps[-1]:
        return steps, chances
    return np.append(steps, newest), np.append(chances, 1.0)
