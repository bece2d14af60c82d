"""Which checkpoints can we go back to, and what would each cost? Hard filters first, each with its reason, then a rank.

The answer explains itself: where a fall began, the last known good, every candidate with the terms of its rank, and
what was left out by which filter. What is assumed is listed; what is unknown is said, never taken as zero or as good.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity
from registry.errors import Invalid
from registry.models import Layout
from registry.recovery import restore_time
from registry.recovery.eligible import LOOSEN, NEEDED, PRODUCTION, TRAINING, Kept, Question, judge
from registry.recovery.onset import Onset
from registry.recovery.ranking import (
    P_OK,
    ProductionOption,
    Ranked,
    Terms,
    TrainingOption,
    rank_for_production,
    rank_for_training,
)
from registry.recovery.scope import (
    Copy,
    Scope,
    Seen,
    read_copies,
    read_scope,
    scope_of_alias,
    scope_of_run,
    seconds_per_step,
)
from registry.recovery.wanted import unmet_conditions
from registry.recovery.watched import Point, Watch, Watched, read_watched, scan
from registry.search.conditions import Condition
from registry.snapshots import LayoutSpec
from registry.types import CheckpointState

ASSUMED_SECONDS_PER_STEP: Final = 10.0  # where neither times nor heartbeats tell
MAX_EXCLUDED: Final = 200  # shown one by one; all are counted
CapabilityPercentiles = Callable[[str], Mapping[int, float] | None]


class BadRollbackQuestion(Invalid):
    code = "bad-rollback-question"
    title = "This does not say what to roll back"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A checkpoint to go back to, in its place. `terms` are the figures behind it, `reasons` sentences."""

    checkpoint: CheckpointIdentity
    rank: int
    terms: Terms
    reasons: tuple[str, ...]
    copy: Copy


@dataclass(frozen=True, slots=True)
class Excluded:
    """A checkpoint that the named filter left out, and why."""

    checkpoint: CheckpointIdentity
    filter: str
    reason: str


@dataclass(frozen=True, slots=True)
class WatchedPoint:
    """One evaluated checkpoint on the scanned path; figures on the common scale, larger is better."""

    checkpoint: CheckpointIdentity
    value: float
    stderr: float | None
    p_bad: float | None


@dataclass(frozen=True, slots=True)
class WatchedOnset:
    """What was watched and what the scan found. `onset` is None where there was nothing to scan; `why` says so."""

    watch: Watch
    made_of: tuple[str, ...]
    onset: Onset | None
    points: tuple[WatchedPoint, ...]
    why: str


@dataclass(frozen=True, slots=True)
class RollbackAnswer:
    """Everything an answer says. `excluded` is the newest of them; `excluded_counts` counts all by filter."""

    mode: str
    sentence: str
    onset: WatchedOnset | None
    last_known_good: CheckpointIdentity | None
    candidates: tuple[Candidate, ...]
    excluded: tuple[Excluded, ...]
    excluded_counts: Mapping[str, int]
    considered: int
    at_step: int | None
    assumptions: tuple[str, ...]
    judged_by: tuple[str, ...]  # in production mode, the benchmarks whose composite ranks


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
) -> RollbackAnswer:
    """The checkpoints to go back to, best first, in a constant number of statements.

    Either `run_id` or `alias` ('project/name') says what to roll back. `watch`: what must not have fallen; with it,
    only checkpoints up to the last evaluated one are candidates. `capabilities` gives the percentiles of one.
    Raises RunNotFound, ProjectNotFound, AliasNotFound, BadRollbackQuestion, NothingToWatch, InvalidFilter.
    """
    scope = _scope(session, run_id, alias, mode)
    seen = read_scope(session, scope)
    copies = read_copies(session, scope)
    run_ids = list(dict.fromkeys([*scope.runs, *(each.identity.run.id for each in seen)]))
    watched = read_watched(session, scope.project_id, run_ids, watch) if watch is not None else None
    onset, p_bad = _scan(watched, seen) if watched is not None else (None, {})
    judged = _read_judged(session, scope, run_ids, watched) if mode == PRODUCTION else None
    question = Question(
        mode=mode,
        after=after,
        before=before,
        at_or_before_step=at_or_before_step,
        target_layout=target_layout,
        rto_seconds=rto_seconds,
        alias_target=scope.alias_target,
        unmet=unmet_conditions(
            session, scope.project_id, [each.id for each in seen], run_ids, conditions, capabilities
        ),
        watched=watch is not None,
        p_bad=p_bad,
        scanned=bool(p_bad),
        layouts=_layouts(session, scope.project_id, seen) if target_layout is not None else {},
    )
    kept: list[Kept] = []
    excluded: list[Excluded] = []
    for each in seen:
        refusal, candidate = judge(each, copies.get(each.id, []), question)
        if candidate is not None:
            kept.append(candidate)
        else:
            excluded.append(Excluded(each.identity, *refusal))
    at_step = _at_step(scope, seen)
    rate = seconds_per_step(seen)
    if mode == TRAINING:
        candidates = _rank_training(kept, at_step or 0, rate or ASSUMED_SECONDS_PER_STEP, question, limit)
    else:
        candidates, unjudged = _rank_production(kept, judged, question, limit)
        excluded = [*unjudged, *excluded]
    good = _last_known_good(onset, seen, p_bad)
    counts = Counter(each.filter for each in excluded)
    return RollbackAnswer(
        mode=mode,
        sentence=_sentence(candidates, counts, len(seen), onset),
        onset=onset,
        last_known_good=good,
        candidates=tuple(candidates),
        excluded=tuple(excluded[:MAX_EXCLUDED]),
        excluded_counts=dict(counts.most_common()),
        considered=len(seen),
        at_step=at_step,
        assumptions=(
            *_assumptions(mode, rate, (watched, judged), candidates),
            *_assumed_times(seen, after is not None or before is not None),
        ),
        judged_by=judged.made_of if judged is not None else (),
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


def _read_judged(session: Session, scope: Scope, run_ids: Sequence[int], watched: Watched | None) -> Watched:
    """What production is ranked by: all capabilities together; what is watched, where nothing else was evaluated."""
    everything = read_watched(session, scope.project_id, run_ids, Watch(), or_nothing=True)
    return everything if everything.points or watched is None else watched


def _scan(watched: Watched, seen: Sequence[Seen]) -> tuple[WatchedOnset, dict[int, float]]:
    """The onset on the live path, oldest generation and attempt first; what was superseded tells nothing of it."""
    alive = [each for each in seen if each.state == CheckpointState.COMMITTED and not each.superseded]
    ordered = sorted(alive, key=lambda each: (each.step, -each.generation, each.identity.attempt))
    onset, p_bad, why = scan(watched, [(each.step, each.id) for each in ordered])
    points = tuple(
        WatchedPoint(each.identity, watched.points[each.id].value, watched.points[each.id].stderr, p_bad.get(each.id))
        for each in ordered
        if each.id in watched.points
    )
    said = "; ".join(filter(None, (why, watched.left_out)))
    return WatchedOnset(watched.watch, watched.made_of, onset, points, said), p_bad


def _layouts(session: Session, project_id: int, seen: Sequence[Seen]) -> dict[int, Layout]:
    wanted = {each.layout_id for each in seen if each.layout_id is not None}
    if not wanted:
        return {}
    query = select(Layout).where(Layout.project_id == project_id, Layout.id.in_(sorted(wanted)))
    return {layout.id: layout for layout in session.scalars(query)}


# ---- ranks


def _rank_training(kept: Sequence[Kept], at_step: int, rate: float, question: Question, limit: int) -> list[Candidate]:
    """Own run first; checkpoints of the runs it came from follow, since going there gives up the fork as well."""
    by_id = {each.seen.id: each for each in kept}
    candidates: list[Candidate] = []
    for own in (True, False):
        options = [
            TrainingOption(each.seen.id, each.seen.step, each.minutes, each.evidence)
            for each in kept
            if (each.seen.generation == 0) is own
        ]
        for ranked in rank_for_training(options, at_step, rate, limit - len(candidates)):
            each = by_id[ranked.id]
            lost = {"steps_lost": float(max(0, at_step - each.seen.step))}
            if not own and candidates:
                ranked = replace(ranked, reasons=(*ranked.reasons[:-1], "Comes after what the run itself saved"))
            candidates.append(_candidate(each, ranked, len(candidates) + 1, lost, question))
    return candidates


def _rank_production(
    kept: Sequence[Kept], watched: Watched | None, question: Question, limit: int
) -> tuple[list[Candidate], list[Excluded]]:
    by_id = {each.seen.id: each for each in kept}
    points: Mapping[int, Point] = watched.points if watched is not None else {}
    options = [_production_option(each, points.get(each.seen.id)) for each in kept]
    ranked, refused = rank_for_production(options, limit)
    candidates = [_candidate(by_id[each.id], each, each.rank, {}, question) for each in ranked]
    unjudged = [Excluded(by_id[each].seen.identity, "unscored", why) for each, why in refused.items()]
    return candidates, unjudged


def _production_option(kept: Kept, point: Point | None) -> ProductionOption:
    value, stderr = (point.value, point.stderr) if point is not None else (None, None)
    return ProductionOption(kept.seen.id, kept.seen.step, value, stderr, kept.minutes, kept.evidence)


def _candidate(
    kept: Kept, ranked: Ranked, rank: int, extra: Mapping[str, float | str | None], question: Question
) -> Candidate:
    terms: Terms = {
        **ranked.terms,
        **extra,
        "tier": kept.copy.tier,
        "bytes": None if kept.copy.bytes is None else float(kept.copy.bytes),
        "p_bad": question.p_bad.get(kept.seen.id),
    }
    notes = list(kept.notes)
    if kept.minutes is None:
        notes.append("the size of its copy is unknown, so its restore time is too")
    if kept.seen.generation:
        notes.append(f"it belongs to run {kept.seen.identity.run.name}, which this one came from or served before")
    sentences = [f"{note[0].upper()}{note[1:]}" for note in notes]
    return Candidate(kept.seen.identity, rank, terms, (*ranked.reasons, *sentences), kept.copy)


# ---- the answer


def _at_step(scope: Scope, seen: Sequence[Seen]) -> int | None:
    """How far the run has come: its newest live checkpoint, or what its newest attempt last said."""
    own = [each.step for each in seen if each.generation == 0 and not each.superseded]
    return max([*own, *([scope.at_step] if scope.at_step is not None else [])], default=None)


def _last_known_good(
    onset: WatchedOnset | None, seen: Sequence[Seen], p_bad: Mapping[int, float]
) -> CheckpointIdentity | None:
    """The evaluated checkpoint at the step that the scan names; None where nothing was scanned."""
    if onset is None or onset.onset is None or onset.onset.last_known_good is None:
        return None
    step = onset.onset.last_known_good
    return next((point.checkpoint for point in onset.points if point.checkpoint.step == step), None)


def _sentence(
    candidates: Sequence[Candidate], counts: Mapping[str, int], considered: int, onset: WatchedOnset | None
) -> str:
    fall = f"{onset.onset.sentence} " if onset is not None and onset.onset is not None else ""
    if onset is not None and onset.onset is None:
        fall = f"{onset.why[0].upper()}{onset.why[1:]}. "
    if candidates:
        best = candidates[0].checkpoint
        return f"{fall}Go back to step {best.step} of {best.run.name} (attempt {best.attempt})."
    if not considered:
        return f"{fall}There are no checkpoints yet: record one first."
    name, count = max(counts.items(), key=lambda item: item[1])
    return (
        f"{fall}No checkpoint is left to go back to: of {considered}, {count} failed the filter '{name}'. "
        f"To loosen it: {LOOSEN[name]}."
    )


def _assumptions(
    mode: str, rate: float | None, figures: Sequence[Watched | None], candidates: Sequence[Candidate]
) -> tuple[str, ...]:
    """What nobody measured, in sentences: only what entered this answer."""
    said = []
    if any(each.terms["restore_minutes"] is not None for each in candidates):
        said.append(restore_time.ASSUMED)
    if candidates:
        chances = ", ".join(f"{name} {chance:.0%}" for name, chance in P_OK.items())
        said.append(f"The chance that a restore works is assumed by its evidence: {chances}")
    if mode == TRAINING and rate is None and candidates:
        said.append(f"A step is assumed to take {ASSUMED_SECONDS_PER_STEP:.0f} s, since no save times are recorded")
    if any(each is not None and each.assumed for each in figures):
        said.append("Some standard errors assume 100 samples, since nobody said how many there were")
    return tuple(said)


def _assumed_times(seen: Sequence[Seen], asked: bool) -> tuple[str, ...]:
    """Where a time was asked for: how many were held against it by when their record arrived."""
    assumed = sum(each.saved_at_assumed for each in seen)
    if not asked or not assumed:
        return ()
    return (
        f"Nobody said when {assumed} of {len(seen)} checkpoints were saved: the times asked for were held against "
        "the arrival of their records",
    )
