"""What a rollback's question looks at: the checkpoints, what was watched, the loss, and how each filter judged."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.evals.percentiles import Floats, Integers
from registry.models import Layout
from registry.recovery.best_copies import BestCopies, best_copies
from registry.recovery.clocks import Clocks, clocks_of, live_path
from registry.recovery.drills.of_runs import read_drills
from registry.recovery.eligible import NEEDED, TRAINING, Judged, Question, judge
from registry.recovery.every_capability import Overlook, look_over
from registry.recovery.falls import Path
from registry.recovery.losses import read_loss
from registry.recovery.onset import Onset
from registry.recovery.population import Population, in_scope, quarantined, read_population, suspected
from registry.recovery.proven import find_proven
from registry.recovery.scope import Scope
from registry.recovery.spikes import Spike, find_spikes, newest_that_matters
from registry.recovery.wanted import unmet_conditions
from registry.recovery.watched import Watch, Watched, read_watched, scan
from registry.search.conditions import Condition
from registry.snapshots import LayoutSpec

CapabilityPercentiles = Callable[[str], Mapping[int, float] | None]


@dataclass(frozen=True, slots=True)
class Asked:
    """The question as it was put: what `find_rollback_candidates` takes, beside what is rolled back."""

    mode: str
    conditions: Sequence[Condition]
    after: datetime | None
    before: datetime | None
    at_or_before_step: int | None
    watch: Watch | None
    target_layout: LayoutSpec | None
    rto_seconds: float | None

    @property
    def names_times(self) -> bool:
        return self.after is not None or self.before is not None


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Everything that was read. `path`: the rows of the live path by step; `spike`: the curve's name, and its spike.

    `clocks`: by generation, how many steps it is behind the run's own count.
    """

    scope: Scope
    run_ids: Sequence[int]
    seen: Population
    copies: BestCopies
    clocks: Clocks
    path: Integers
    watched: Watched | None
    onset: Onset | None
    why: str  # there is no onset
    overlook: Overlook | None  # where nothing is watched
    spike: tuple[str, Spike] | None
    question: Question
    judged: Judged

    @property
    def at_step(self) -> int | None:
        """How far the run has come: its newest live checkpoint, or what its newest attempt last said."""
        own = self.seen.steps[(self.seen.generations == 0) & ~self.seen.superseded]
        newest = [int(own.max())] if len(own) else []
        return max([*newest, *([self.scope.at_step] if self.scope.at_step is not None else [])], default=None)

    def stands_at(self, generation: int) -> int:
        """How far the run has come, counted as the checkpoints of a generation count."""
        return (self.at_step or 0) + self.clocks.get(generation, 0)


def look_at(session: Session, scope: Scope, asked: Asked, capabilities: CapabilityPercentiles | None) -> View:
    """Read what the question is about, and hold every checkpoint against every filter."""
    seen = read_population(
        session,
        scope,
        NEEDED[asked.mode],
        after=asked.after,
        before=asked.before,
        layouts=asked.target_layout is not None,
    )
    suspect, suspect_copies = suspected(session, scope.project_id)
    run_ids = list(dict.fromkeys([*scope.runs, *np.unique(seen.runs).tolist()]))
    drills = read_drills(session, scope.project_id, run_ids)
    copies = best_copies(session, scope.project_id, in_scope(scope), suspect_copies, seen.ids, drills)
    watched = read_watched(session, scope.project_id, run_ids, asked.watch) if asked.watch is not None else None
    clocks = clocks_of(seen, scope)
    path = live_path(seen, clocks)
    placed = Path(
        *(scope.project_id, seen.ids[path], seen.steps[path], seen.runs[path]),
        {run_id: f"{scope.project}/{name}" for run_id, name in scope.runs.items()},
    )
    overlook = look_over(session, placed, run_ids) if watched is None else None
    onset, bad, why = _fall_of(session, placed, watched) if watched is not None else (None, None, "")
    spike = _newest_spike(session, scope, asked.at_or_before_step) if _asks_of_loss(asked) else None
    question = Question(
        mode=asked.mode,
        after=asked.after,
        before=asked.before,
        at_or_before_step=asked.at_or_before_step,
        target_layout=asked.target_layout,
        rto_seconds=asked.rto_seconds,
        alias_target=scope.alias_target,
        unmet=unmet_conditions(session, scope.project_id, seen.ids.tolist(), run_ids, asked.conditions, capabilities),
        suspect=suspect,
        quarantined=quarantined(session, scope.project_id),
        p_bad=_spread(bad, path, seen),
        layouts=_layouts(session, scope.project_id, seen),
        alone=onset.alone if onset is not None else (),
        scored=frozenset(onset.steps) if onset is not None else (),
        spike=spike[1] if spike is not None and not spike[1].recovered else None,
    )
    judged = judge(seen, copies, question)
    return View(scope, run_ids, seen, copies, clocks, path, watched, onset, why, overlook, spike, question, judged)


def _fall_of(session: Session, path: Path, watched: Watched) -> tuple[Onset | None, Floats | None, str]:
    """What the scores over the steps say; where they establish nothing alone, what else is known of a fall."""
    onset, bad, why = scan(watched, path.steps, path.ids)
    if onset is not None and onset.is_established:
        return onset, bad, why
    found = find_proven(session, path, watched, onset)
    if found is None:
        return onset, bad, why
    return *found, "" if found[0].is_established else found[0].sentence


def _asks_of_loss(asked: Asked) -> bool:
    return asked.mode == TRAINING and asked.watch is None


def _newest_spike(session: Session, scope: Scope, at_or_before_step: int | None) -> tuple[str, Spike] | None:
    """(the curve's name, the newest spike that was more than one point, else the newest at all) of the run itself."""
    curve = read_loss(session, scope.project_id, scope.run_id, scope.through, at_or_before_step=at_or_before_step)
    spike = newest_that_matters(find_spikes(curve.steps, curve.values)) if curve is not None else None
    return (curve.name, spike) if curve is not None and spike is not None else None


def _layouts(session: Session, project_id: int, seen: Population) -> dict[int, Layout]:
    wanted = sorted({each for each in seen.layouts if each is not None})
    if not wanted:
        return {}
    query = select(Layout).where(Layout.project_id == project_id, Layout.id.in_(wanted))
    return {layout.id: layout for layout in session.scalars(query)}


def _spread(bad: Floats | None, path: Integers, seen: Population) -> Floats | None:
    """P(bad) as a column over the whole population. What is on no path of the run is not where it fell."""
    if bad is None:
        return None
    column = np.where(seen.committed & ~seen.superseded, 0.0, np.nan)
    column[path] = bad
    return column
