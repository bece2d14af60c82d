"""The few checkpoints that a rollback's answer shows: candidates, what was left out, and the watched points."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from registry.checkpoints.rows import CheckpointIdentity
from registry.evals.percentiles import Integers
from registry.recovery.answers import Candidate, Excluded, Served, SpikeFound, WatchedOnset, WatchedPoint
from registry.recovery.drills.shapes import FAILED
from registry.recovery.eligible import TRAINING, reason_of
from registry.recovery.every_capability import Overlook
from registry.recovery.loosen import in_words, what_to_loosen
from registry.recovery.ranking import NO_FIGURE, Ranked, Terms
from registry.recovery.remedy import Origin, Remedy, remedy
from registry.recovery.served import served_beside
from registry.recovery.shown import Copy, Shown, read_chosen_copies, read_pieces
from registry.recovery.view import View
from registry.recovery.watched import Watched

MAX_EXCLUDED: Final = 200  # shown one by one; all are counted
MAX_POINTS: Final = 400  # evaluated checkpoints shown one by one
NEWEST_POINTS: Final = 200  # of which this many are the newest


@dataclass(frozen=True, slots=True)
class Told:
    candidates: tuple[Candidate, ...]
    excluded: tuple[Excluded, ...]
    excluded_counts: dict[str, int]
    onset: WatchedOnset | None
    last_known_good: CheckpointIdentity | None
    why_not_good: str  # the last known good does not come first
    served: Served | None
    spike: SpikeFound | None
    overlook: Overlook | None
    loosen: dict[str, str]  # where no candidate is left: the filters that help, and how


def tell(session: Session, view: View, ranked: list[Ranked], figures: Watched | None, *, every_point: bool) -> Told:
    """Read the checkpoints that are shown, and say of each what there is to say.

    `figures`: what production is judged by, where that was read.
    """
    left_out = np.flatnonzero(view.judged.failed >= 0)
    points = _points_shown(view, every_point=every_point)
    cure, rewind_to = _remedy(view, ranked)
    target, good_id = view.scope.alias_target, _last_known_good(view)
    named = [*(each.id for each in ranked), *(each for each in (rewind_to, target, good_id) if each is not None)]
    rows = np.concatenate((left_out[:MAX_EXCLUDED], points))
    shown = Shown.read(session, view.scope.project_id, view.scope.project, [*named, *view.seen.ids[rows].tolist()])
    onset = _onset(view, points, shown)
    spike = None
    if view.spike is not None and cure is not None:
        load = None if rewind_to is None else shown.identity(rewind_to)
        skip = () if cure.skip is None else (cure.skip,)
        spike = SpikeFound(view.scope.run_id, view.spike[1], view.spike[0], load, skip, cure.sentence, cure.is_needed)
    counts = Counter(view.judged.names[place] for place in view.judged.failed[left_out].tolist())
    good = None if good_id is None else shown.identity(good_id)
    candidates = _candidates(session, view, ranked, shown)
    served = None
    if target is not None and figures is not None:
        served = served_beside(view, shown.identity(target), figures, candidates[0] if candidates else None)
    return Told(
        candidates=candidates,
        excluded=_excluded(session, view, left_out[:MAX_EXCLUDED], shown),
        excluded_counts=dict(counts.most_common()),
        onset=onset,
        last_known_good=good,
        why_not_good=_why_not_first(session, view, good, ranked, shown),
        served=served,
        spike=spike,
        overlook=view.overlook,
        loosen={} if candidates else in_words(session, view, what_to_loosen(view)),
    )


def known(number: float) -> float | None:
    return None if np.isnan(number) else float(number)


def _points_shown(view: View, *, every_point: bool) -> Integers:
    """The rows of the evaluated checkpoints that are shown: the newest, those around the fall, and of the rest some."""
    evaluated = _evaluated(view)
    if every_point or len(evaluated) <= MAX_POINTS:
        return evaluated
    older = len(evaluated) - NEWEST_POINTS
    some = np.unique(np.linspace(0, older - 1, MAX_POINTS - NEWEST_POINTS).astype(np.int64))
    onset = view.onset
    marks = [] if onset is None else [onset.after_step, onset.by_step, onset.last_known_good]
    at = np.flatnonzero(np.isin(view.seen.steps[evaluated], [each for each in marks if each is not None]))
    return np.asarray(evaluated[np.unique(np.concatenate((some, at, np.arange(older, len(evaluated)))))])


def _evaluated(view: View) -> Integers:
    if view.watched is None:
        return np.empty(0, np.int64)
    return np.asarray(view.path[~np.isnan(view.watched.along(view.seen.ids[view.path])[0])])


def _onset(view: View, points: Integers, shown: Shown) -> WatchedOnset | None:
    watched, p_bad = view.watched, view.question.p_bad
    if watched is None:
        return None
    ids = view.seen.ids[points]
    values, errors = (column.tolist() for column in watched.along(ids))
    bad = p_bad[points].tolist() if p_bad is not None else [float("nan")] * len(points)
    told = tuple(
        WatchedPoint(shown.identity(identity), value, known(error), known(chance))
        for identity, value, error, chance in zip(ids.tolist(), values, errors, bad, strict=True)
    )
    said = "; ".join(filter(None, (view.why if view.onset is None else "", watched.left_out)))
    return WatchedOnset(watched.watch, watched.made_of, view.onset, told, len(_evaluated(view)), said)


def _last_known_good(view: View) -> int | None:
    """The checkpoint at the step that the scan, or a bisect, names: an evaluated one, where there are several."""
    if view.onset is None or view.onset.last_known_good is None:
        return None
    evaluated = _evaluated(view)
    rows = np.concatenate((evaluated, view.path))
    at = rows[view.seen.steps[rows] == view.onset.last_known_good]
    return int(view.seen.ids[at[0]]) if len(at) else None


def _why_not_first(
    session: Session, view: View, good: CheckpointIdentity | None, ranked: list[Ranked], shown: Shown
) -> str:
    """Why the last known good is not the first candidate; '' where it is, or where there is none of either."""
    if good is None or not ranked or shown.identity(ranked[0].id).step == good.step:
        return ""
    row = int(np.flatnonzero(view.seen.ids == good.id)[0])
    if view.judged.failed[row] >= 0:
        (excluded,) = _excluded(session, view, np.array([row]), shown)
        return f"Step {good.step}, the last known good, is left out: {excluded.reason}."
    lower = next((each for each in ranked if each.id == good.id), None)
    place = f"is number {lower.rank}" if lower is not None else "comes later"
    by = (
        "the time that going back is expected to cost"
        if view.question.mode == TRAINING
        else "the score they surely have"
    )
    return f"Step {good.step}, the last known good, {place} among the candidates, which are ranked by {by}."


def _remedy(view: View, ranked: list[Ranked]) -> tuple[Remedy | None, int | None]:
    """What undoes the spike, with the id of the checkpoint to load: the first candidate, unless the spike is over."""
    if view.spike is None:
        return None, None
    seen, rows = view.seen, view.judged.rows
    if not view.spike[1].recovered:
        rows = rows[np.isin(seen.ids[rows], [each.id for each in ranked[:1]])]
    own = rows[seen.generations[rows] == 0]
    before = rows[(seen.generations[rows] > 0) & np.isin(seen.runs[rows], [*view.scope.runs])]  # the newest first
    origin = None
    if len(before):
        origin = Origin(int(seen.steps[before[0]]), view.scope.runs[int(seen.runs[before[0]])])
    cure = remedy(view.spike[1], seen.steps[own].tolist(), origin)
    loaded = before[:1] if cure.rewind_to is None else own[seen.steps[own] == cure.rewind_to]
    return cure, int(seen.ids[loaded[0]]) if len(loaded) else None


def _candidates(session: Session, view: View, ranked: list[Ranked], shown: Shown) -> tuple[Candidate, ...]:
    rows = np.flatnonzero(np.isin(view.seen.ids, np.array([each.id for each in ranked], dtype=np.int64)))
    row_of = dict(zip(view.seen.ids[rows].tolist(), rows.tolist(), strict=True))
    replicas = {each.id: int(view.copies.replicas[row_of[each.id]]) for each in ranked}
    copies = read_chosen_copies(session, view.scope.project_id, list(replicas.values()))
    return tuple(_candidate(view, each, row_of[each.id], shown, copies[replicas[each.id]]) for each in ranked)


def _candidate(view: View, ranked: Ranked, row: int, shown: Shown, copy: Copy) -> Candidate:
    identity, p_bad = shown.identity(ranked.id), view.question.p_bad
    lost: Terms = {}
    if view.question.mode == TRAINING:
        stood = view.stands_at(int(view.seen.generations[row]))
        lost = {"steps_lost": float(max(0, stood - identity.step))}
    terms: Terms = {
        **ranked.terms,
        **lost,
        "tier": copy.tier,
        "bytes": None if copy.bytes is None else float(copy.bytes),
        "p_bad": None if p_bad is None else known(p_bad[row]),
    }
    fit = view.judged.fits.get(row)
    notes = [fit.words] if fit is not None and fit.words else []
    notes += _drills_told(view, ranked.id, row)
    if copy.tier == "local":
        notes.append(
            f"its copy is on the local disks of {copy.host or 'hosts nobody named'}: usable while they survive"
        )
    if copy.bytes is None:
        notes.append("the size of its copy is unknown, so its restore time is too")
    if view.seen.generations[row]:
        notes.append(f"it belongs to run {identity.run.name}, which this one came from or served before")
    sentences = [f"{note[0].upper()}{note[1:]}".rstrip(".") for note in notes]
    return Candidate(identity, ranked.rank, terms, (*ranked.reasons, *sentences), copy)


def _drills_told(view: View, checkpoint_id: int, row: int) -> list[str]:
    """How the last drill of its copy went, and the last one of which nobody said which copy it tried."""
    drills = view.copies.drills
    own = drills.last.get(int(view.copies.replicas[row]))
    told = [] if own is None else [own.words if own.verdict == FAILED else f"its copy was {own.words}"]
    other = drills.unnamed.get(checkpoint_id)
    if other is not None and other.verdict == FAILED:
        told.append(f"a drill that names no copy failed on {other.day}: {other.reason}")
    return told


def _excluded(session: Session, view: View, rows: Integers, shown: Shown) -> tuple[Excluded, ...]:
    """The newest of what was left out, each with its reason."""
    seen, judged, question = view.seen, view.judged, view.question
    named = [(row, judged.names[place]) for row, place in zip(rows.tolist(), judged.failed[rows].tolist(), strict=True)]
    broken = [int(seen.ids[row]) for row, name in named if name == "pieces"]
    pieces = read_pieces(session, view.scope.project_id, broken)
    found = []
    for row, name in named:
        identity = int(seen.ids[row])
        if name == "unscored" and (question.p_bad is None or not np.isnan(question.p_bad[row])):
            why = NO_FIGURE
        else:
            recorded = shown.recorded[identity]
            why = reason_of(name, row, seen, view.copies, question, judged, recorded, pieces.get(identity, {}))
        found.append(Excluded(shown.identity(identity), name, why.rstrip(".")))
    return tuple(found)
