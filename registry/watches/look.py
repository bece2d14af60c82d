"""Look at what a watch watches: everything that is there now, whatever arrived last.

A look reads without holding anything, then writes in a transaction of its own. What arrives in between has left a mark
of its own (`registry.watching`), so that another look follows; a look whose marks somebody else has settled meanwhile
saw older scores than that one, and is dropped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from registry.db import Database
from registry.evals.percentiles import Floats, Integers
from registry.models import AliasMove, Checkpoint, WatchDue
from registry.models import Watch as WatchModel
from registry.recovery.clocks import clocks_of, live_path
from registry.recovery.eligible import NEEDED, PRODUCTION
from registry.recovery.losses import read_loss
from registry.recovery.population import read_population
from registry.recovery.scope import scope_of_run
from registry.recovery.spikes import NON_FINITE, SINGLE, WINDOW, Spike, find_spikes
from registry.recovery.watched import LEAST_ERROR, Watch, Watched, read_watched
from registry.upsert import chunks
from registry.watches.alarm import Alarm, find_alarms, one_move
from registry.watches.settle import Draft, settle
from registry.watches.standing import WatchRow, get_watch
from registry.watching import LOSS

AT_ONCE: Final = 100  # watches in one round
MOST_MOVES: Final = 1_000  # of an alias, the newest


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look saw. `due`: the marks that it settles; `since_step`: before it, nothing was looked at."""

    watch: WatchRow
    due: Sequence[int]
    drafts: Sequence[Draft]
    since_step: int


def look_at_due(database: Database) -> int:
    """One round over the watches that have something new; gives how many findings it opened."""
    with database.read() as session:
        due = session.scalars(select(WatchDue.watch_id).distinct().limit(AT_ONCE)).all()
    opened, failed = 0, list[Exception]()
    for watch_id in sorted(due):
        try:
            with database.read() as session:
                looked = look(session, watch_id)
            with database.write() as session:
                opened += close_look(session, looked)
        except Exception as error:  # one watch that cannot be looked at keeps no other from its look
            failed.append(error)
    if failed:
        raise failed[0]
    return opened


def look(session: Session, watch_id: int) -> Looked:
    """What the watch would find now. The marks are read first: what comes after them is another look's."""
    watch = get_watch(session, watch_id, with_scores=False)
    own = (WatchDue.project_id == watch.project_id, WatchDue.watch_id == watch_id)
    due = session.scalars(select(WatchDue.id).where(*own)).all()
    if watch.ended_at is not None:
        return Looked(watch, due, (), 0)
    if watch.kind == LOSS:
        return _loss(session, watch, due)
    return Looked(watch, due, _of_alias(session, watch) if watch.run is None else _of_run(session, watch), 0)


def close_look(session: Session, looked: Looked) -> int:
    """Write what a look saw, unless a later one did so already; gives how many findings were opened."""
    watch = looked.watch
    session.execute(select(WatchModel.id).where(WatchModel.id == watch.id).with_for_update())
    gone = [WatchDue.project_id == watch.project_id, WatchDue.watch_id == watch.id]
    left = session.scalars(select(WatchDue.id).where(*gone)).all()
    if not set(looked.due) <= set(left):
        return 0
    for chunk in chunks(looked.due):
        session.execute(delete(WatchDue).where(*gone, WatchDue.id.in_(chunk)))
    return settle(session, watch, looked.drafts, looked.since_step) if watch.ended_at is None else 0


# ---- scores


def _of_run(session: Session, watch: WatchRow) -> list[Draft]:
    """Falls along the live path of a run. What the runs it came from scored is its reference, and not its fall."""
    assert watch.run is not None
    scope = scope_of_run(session, watch.run.id)
    seen = read_population(session, scope, NEEDED[PRODUCTION])
    path = live_path(seen, clocks_of(seen, scope))
    watched = _watched(session, watch, list(scope.runs))
    ids, steps, values, errors = _figures(watched, seen.ids[path], seen.steps[path])
    first = np.unique(steps, return_index=True)[1]
    ids, steps, values, errors = ids[first], steps[first], values[first], errors[first]
    own = set(seen.ids[seen.generations == 0].tolist())
    alarms = find_alarms(values.tolist(), errors.tolist())
    return [
        _draft(watch, watched, alarm, ids, steps, {int(ids[alarm.at]): watch.run.id})
        for alarm in alarms
        if int(ids[alarm.at]) in own
    ]


def _of_alias(session: Session, watch: WatchRow) -> list[Draft]:
    """Falls from one checkpoint that the alias served to the next. An evaluation of an older one is no new fall."""
    row = session.get_one(WatchModel, watch.id)
    moves = (
        select(AliasMove.checkpoint_id, Checkpoint.run_id, Checkpoint.step)
        .join(Checkpoint, (Checkpoint.project_id == AliasMove.project_id) & (Checkpoint.id == AliasMove.checkpoint_id))
        .where(AliasMove.project_id == watch.project_id, AliasMove.alias_id == row.alias_id)
        .order_by(AliasMove.id.desc())
        .limit(MOST_MOVES)
    )
    served: list[Any] = list(reversed(session.execute(moves).all()))
    run_of = {each.checkpoint_id: each.run_id for each in served}
    watched = _watched(session, watch, sorted(set(run_of.values())))
    served_ids = np.array([each.checkpoint_id for each in served], dtype=np.int64)
    served_steps = np.array([each.step for each in served], dtype=np.int64)
    ids, steps, values, errors = _figures(watched, served_ids, served_steps)
    alarms = one_move(values.tolist(), errors.tolist())
    return [_draft(watch, watched, alarm, ids, steps, run_of) for alarm in alarms]


def _watched(session: Session, watch: WatchRow, run_ids: list[int]) -> Watched:
    what = Watch(watch.benchmark, watch.capability)
    return read_watched(session, watch.project_id, run_ids, what, or_nothing=True, uncounted=False, displaced=True)


def _figures(watched: Watched, ids: Integers, steps: Integers) -> tuple[Integers, Integers, Floats, Floats]:
    """Of the checkpoints that have a finite score with a known error: ids, steps, scores, errors."""
    values, errors = watched.along(ids)
    known = ~np.isnan(values) & ~np.isnan(errors)
    return ids[known], steps[known], values[known], np.maximum(errors[known], LEAST_ERROR)


def _draft(
    watch: WatchRow, watched: Watched, alarm: Alarm, ids: Integers, steps: Integers, run_of: dict[int, int]
) -> Draft:
    checkpoint_id, good = int(ids[alarm.at]), int(ids[alarm.good])
    before, after = int(steps[alarm.good]), int(steps[alarm.at])
    spread = (alarm.stderr**2 + alarm.level_stderr**2) ** 0.5
    size = f"{100 * alarm.fall:.1f} ± {100 * spread:.1f} points"
    where = f"step {after}, which {watch.alias} moved to," if watch.alias is not None else f"step {after}"
    return Draft(
        run_id=run_of[checkpoint_id],
        checkpoint_id=checkpoint_id,
        from_step=before,
        to_step=after,
        sentence=f"{_capital(watch.words)} fell by {size}: {where} scores below what came up to step {before}.",
        detail={
            "made_of": list(watched.made_of),
            "fall": alarm.fall,
            "fall_stderr": spread,
            "level": alarm.level,
            "level_stderr": alarm.level_stderr,
            "value": alarm.value,
            "stderr": alarm.stderr,
            "cusum": alarm.s,
            "scores_since": alarm.at - alarm.good,
        },
        good_id=good,
    )


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


# ---- the loss


def _loss(session: Session, watch: WatchRow, due: Sequence[int]) -> Looked:
    """Spikes of more than one point, and points that are not finite."""
    assert watch.run is not None
    scope = scope_of_run(session, watch.run.id)
    curve = read_loss(session, scope.project_id, scope.run_id, scope.through)
    if curve is None or not len(curve.steps):
        return Looked(watch, due, (), 0)
    spikes = [each for each in find_spikes(curve.steps, curve.values) if each.shape == NON_FINITE or each.points > 1]
    drafts = [_spiked(watch.run.id, each) for each in spikes if each.shape != SINGLE]
    # Where the curve is cut, the first points have no past: what was found there before is left as it is.
    since = 0 if len(curve.steps) <= WINDOW else int(curve.steps[WINDOW])
    return Looked(watch, due, drafts, since if curve.is_cut else 0)


def _spiked(run_id: int, spike: Spike) -> Draft:
    where = f"from step {spike.from_step} to {spike.to_step}"
    if spike.from_step == spike.to_step:
        where = f"at step {spike.from_step}"
    told = f"The loss was not finite {where}" if spike.shape == NON_FINITE else f"The loss spiked {where}"
    size = "" if spike.shape == NON_FINITE else f", from {spike.level:.3g} to {spike.peak:.3g}"
    end = "; it came back by itself" if spike.recovered else "; it has not come back yet"
    return Draft(
        run_id=run_id,
        checkpoint_id=None,
        from_step=spike.from_step,
        to_step=spike.to_step,
        sentence=f"{told}{size}{end}.",
        detail={
            "shape": spike.shape,
            "level": spike.level if np.isfinite(spike.level) else None,
            "peak": spike.peak if np.isfinite(spike.peak) else None,
            "points": spike.points,
            "recovered": spike.recovered,
        },
        good_id=None,
    )
