"""Which checkpoints can we go back to, and what would each cost? Hard filters first, each with its reason, then a rank.

The answer explains itself: where a fall began, the last known good, every candidate with the terms of its rank, and
what was left out by which filter. What is assumed is listed; what is unknown is said, never taken as zero or as good.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from registry.errors import Invalid
from registry.evals.percentiles import Integers
from registry.recovery.answers import RollbackAnswer
from registry.recovery.eligible import NEEDED, TRAINING
from registry.recovery.population import seconds_per_step
from registry.recovery.ranking import (
    Lineup,
    ProductionOption,
    Ranked,
    TrainingOption,
    known_good_alone,
    rank_for_production,
    rank_lineup,
    surest,
)
from registry.recovery.said import assumptions, headline, sentence
from registry.recovery.scope import Scope, scope_of_alias, scope_of_run
from registry.recovery.spikes import LEAD_STEPS
from registry.recovery.telling import known, tell
from registry.recovery.view import Asked, CapabilityPercentiles, View, look_at
from registry.recovery.watched import Watch, Watched, read_watched
from registry.search.conditions import Condition
from registry.snapshots import LayoutSpec

ASSUMED_SECONDS_PER_STEP: Final = 10.0  # where neither times nor heartbeats tell


class BadRollbackQuestion(Invalid):
    code = "bad-rollback-question"
    title = "This does not say what to roll back"


def find_rollback_candidates(
    session: Session,
    *,
    run_id: int | None = None,
    alias: str | None = None,
    mode: str = TRAINING,
    conditions: Sequence[Condition] = (),
    after: datetime | None = None,
    before: datetime | None = None,
    at_or_before_step: int | None = None,
    watch: Watch | None = None,
    target_layout: LayoutSpec | None = None,
    rto_seconds: float | None = None,
    limit: int = 5,
    capabilities: CapabilityPercentiles | None = None,
    every_point: bool = False,
) -> RollbackAnswer:
    """The checkpoints to go back to, best first, in a constant number of statements.

    Either `run_id` or `alias` ('project/name') says what to roll back. `watch`: what must not have fallen; with it,
    only checkpoints up to the last evaluated one are candidates. Without it, a training's loss is looked at for a
    spike, and every capability for a fall, which is said and leaves nobody out. `capabilities` gives the percentiles
    of one; `every_point`: all evaluated checkpoints, not some of them.
    Raises RunNotFound, ProjectNotFound, AliasNotFound, BadRollbackQuestion, NothingToWatch, InvalidFilter.
    """
    scope = _scope(session, run_id, alias, mode)
    asked = Asked(mode, conditions, after, before, at_or_before_step, watch, target_layout, rto_seconds)
    view = look_at(session, scope, asked, capabilities)
    rate, figures = None, None
    if mode != TRAINING or alias is not None:
        figures = _read_judged(session, view)
    if mode == TRAINING or figures is None:
        rate = seconds_per_step(session, scope)
        ranked = _rank_training(view, rate or ASSUMED_SECONDS_PER_STEP, limit)
    else:
        view, ranked = _rank_production(view, figures, limit)
    told = tell(session, view, ranked, figures, every_point=every_point)
    return RollbackAnswer(
        mode=mode,
        sentence=sentence(told, len(view.seen), mode),
        headline=headline(told, mode),
        onset=told.onset,
        spike=told.spike,
        last_known_good=told.last_known_good,
        served=told.served,
        candidates=told.candidates,
        excluded=told.excluded,
        excluded_counts=told.excluded_counts,
        considered=len(view.seen),
        at_step=view.at_step,
        assumptions=assumptions(
            mode,
            rate_known=rate is not None,
            assumed_rate=ASSUMED_SECONDS_PER_STEP,
            errors_assumed=any(each is not None and each.assumed for each in (view.watched, figures)),
            candidates=told.candidates,
            times_asked=asked.names_times,
            times_assumed=view.seen.assumed_times,
            considered=len(view.seen),
            lead_steps=LEAD_STEPS if told.spike is not None and told.spike.skip else None,
        ),
        judged_by=figures.made_of if figures is not None and mode != TRAINING else (),
        fallen=view.overlook.fallen if view.overlook is not None else (),
        loosen=told.loosen,
        looked_at=view.overlook.looked_at if view.overlook is not None else (),
    )


def _scope(session: Session, run_id: int | None, alias: str | None, mode: str) -> Scope:
    if mode not in NEEDED:
        raise BadRollbackQuestion(f"mode {mode!r} is neither 'training' nor 'production'.")
    if (run_id is None) == (alias is None):
        raise BadRollbackQuestion("Give either run_id or alias ('project/name'): one of them says what to roll back.")
    if run_id is not None:
        return scope_of_run(session, run_id)
    if alias is None or "/" not in alias:
        raise BadRollbackQuestion(f"{alias!r} is no alias: write it as 'project/name'.")
    return scope_of_alias(session, alias)


def _rank_training(view: View, rate: float, limit: int) -> list[Ranked]:
    """Own run first; checkpoints of the runs it came from follow, since going there gives up the fork as well."""
    seen, copies, ranked = view.seen, view.copies, list[Ranked]()
    for mine, rows in _groups(view):
        if not len(rows) or len(ranked) >= limit:
            continue
        at_step = view.stands_at(int(seen.generations[rows[0]]))
        lineup = Lineup(seen.ids[rows], seen.steps[rows], copies.seconds[rows] / 60, copies.chances(rows))

        def option(at: int, rows: Integers = rows) -> TrainingOption:
            row = int(rows[at])
            minutes = known(copies.seconds[row] / 60)
            return TrainingOption(
                *(int(seen.ids[row]), int(seen.steps[row]), minutes, copies.evidence(row)), *copies.tried(row)
            )

        for each in rank_lineup(lineup, option, at_step, rate, limit - len(ranked)):
            if not mine and ranked:
                each = replace(each, reasons=(*each.reasons[:-1], "Comes after what the run itself saved"))
            ranked.append(replace(each, rank=len(ranked) + 1))
    return ranked


def _groups(view: View) -> list[tuple[bool, Integers]]:
    """The rows that are left: the run's own, then by the clock on which they count, the nearest first."""
    rows, generations = view.judged.rows, view.seen.generations[view.judged.rows]
    behind = np.full(len(rows), -1, dtype=np.int64)  # -1: what an alias served before
    for generation, steps in view.clocks.items():
        behind[generations == generation] = steps
    others = [rows[(generations > 0) & (behind == each)] for each in sorted({*view.clocks.values()})]
    return [(True, rows[generations == 0]), *((False, each) for each in (*others, rows[behind < 0]))]


def _read_judged(session: Session, view: View) -> Watched:
    """What production is ranked by: all capabilities together; what is watched, where nothing else was evaluated."""
    everything = read_watched(session, view.scope.project_id, view.run_ids, Watch(), or_nothing=True, uncounted=False)
    return everything if len(everything.ids) or view.watched is None else view.watched


def _rank_production(view: View, figures: Watched, limit: int) -> tuple[View, list[Ranked]]:
    """The ranked ones; who has no figure to be judged by is excluded as unscored."""
    seen, copies, judged, rows = view.seen, view.copies, view.judged, view.judged.rows
    values, errors = figures.along(seen.ids[rows])
    failed = judged.failed.copy()
    failed[rows[np.isnan(values)]] = judged.names.index("unscored")
    best = surest(seen.ids[rows], seen.steps[rows], values, errors, copies.chances(rows), limit)

    def option(place: int) -> ProductionOption:
        row = int(rows[place])
        return ProductionOption(
            *(int(seen.ids[row]), int(seen.steps[row]), known(values[place]), known(errors[place])),
            *(known(copies.seconds[row] / 60), copies.evidence(row), *copies.tried(row)),
        )

    ranked = rank_for_production([option(place) for place in best.tolist()], limit)[0]
    if not ranked and (good := _known_good(view)) is not None:
        failed[rows[good]] = -1
        ranked = [known_good_alone(option(good))]
    return replace(view, judged=replace(judged, failed=failed)), ranked


def _known_good(view: View) -> int | None:
    """The place, among the rows that are left, of the last known good of a fall that is established."""
    onset, rows = view.onset, view.judged.rows
    if onset is None or not onset.is_established or onset.last_known_good is None:
        return None
    at = np.flatnonzero((view.seen.steps[rows] == onset.last_known_good) & np.isin(rows, view.path))
    return int(at[0]) if len(at) else None
