"""The hard filters of a rollback: what may be a candidate at all, and why what may not is left out.

Each filter is a column of yes and no over the population; the first that a checkpoint fails is the one that excludes
it. Reasons are written for those that are shown.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np

from registry.evals.percentiles import Booleans, Floats, Integers
from registry.layout.resharding import CALLED
from registry.models import Layout
from registry.recovery.best_copies import BestCopies
from registry.recovery.onset import SAFE
from registry.recovery.population import Population
from registry.recovery.reshape import Fit, fit
from registry.recovery.shown import Recorded
from registry.recovery.spikes import LEAD_STEPS, Spike, cause_within
from registry.snapshots import LayoutSpec
from registry.types import PieceName, Presence
from registry.wording import listed

TRAINING: Final = "training"
PRODUCTION: Final = "production"

# The pieces that each mode needs; what each filter says of whom it leaves out, and what it is loosened by.
NEEDED: Final = {
    TRAINING: (PieceName.WEIGHTS, PieceName.OPTIMIZER, PieceName.DATA_POSITION),
    PRODUCTION: (PieceName.WEIGHTS,),
}
IN_WORDS: Final = {
    "state": "not committed",
    "superseded": "superseded",
    "loss": "loss not finite",
    "quarantine": "quarantined",
    "suspect": "suspect",
    "time": "outside the time asked for",
    "step": "beyond the step",
    "pieces": "pieces absent or unknown",
    "copy": "no usable copy",
    "layout": "not for this layout",
    "condition": "a condition is not met",
    "unscored": "no score that counts",
    "p_bad": "may be bad already",
    "spike": "too near a spike of the loss, or after it",
    "size": "size of the copy unknown",
    "rto": "too slow to restore",
    "alias_target": "where the alias points now",
}
LOOSEN: Final = {
    "state": "commit a pending checkpoint",
    "superseded": "fork a new run from a superseded checkpoint, if its branch is wanted after all",
    "loss": "look at what the loss did: nothing finite is left",
    "quarantine": "remove the quarantine tag of a checkpoint that has been cleared",
    "suspect": "look into the incidents behind the suspicion, and lift it where the checkpoint was not the cause",
    "time": "ask for a longer time (after, before)",
    "step": "ask for later steps too",
    "pieces": "record the pieces of the checkpoints, or ask in production mode, which needs weights only",
    "copy": "record or restore a copy of one of the checkpoints",
    "layout": "ask for another layout, or convert a checkpoint first",
    "condition": "loosen the conditions",
    "unscored": "evaluate the newest checkpoints as the others were, or watch nothing",
    "p_bad": "evaluate the newest of them again, or watch nothing",
    "spike": "watch a benchmark or a capability: then evaluations decide, and not the loss",
    "size": "record the sizes of the copies, or name no limit of time: without its size no copy can promise one",
    "rto": "allow more time for the restore",
    "alias_target": "let the alias have another checkpoint to go back to",
}


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What the filters hold each checkpoint against.

    `unmet` and `suspect` are reasons by checkpoint id; `p_bad` is a column, NaN where no comparable finite score is at
    or after the step, or at the steps `alone`, or None where nothing was scanned. `scored`: the steps with an
    answer of their own; between them that of the next counts. `spike`: of the loss, where it has not come back.
    """

    mode: str
    after: datetime | None
    before: datetime | None
    at_or_before_step: int | None
    target_layout: LayoutSpec | None
    rto_seconds: float | None
    alias_target: int | None
    unmet: Mapping[int, str]
    suspect: Mapping[int, str]
    quarantined: set[int]
    p_bad: Floats | None
    layouts: Mapping[int, Layout]
    alone: Collection[int] = ()
    scored: Collection[int] = ()
    spike: Spike | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """`failed`: per checkpoint the place in `names` of the filter that excludes it, -1 where none does.

    `rows`: those that none excludes.
    """

    names: Sequence[str]
    failed: Integers
    rows: Integers
    fits: Mapping[int, Fit]  # by row, where a layout was asked for


def judge(population: Population, copies: BestCopies, question: Question, *, without: Collection[str] = ()) -> Judged:
    """Every checkpoint against every filter but those `without`, the cheap ones first."""
    failed = np.full(len(population), -1, dtype=np.int64)
    names = [*LOOSEN]

    def exclude(name: str, mask: Booleans) -> None:
        if name not in without:
            failed[(failed < 0) & mask] = names.index(name)

    for name, mask in _as_recorded(population, question):
        exclude(name, mask)
    for name, mask in _by_evidence(population, question):
        exclude(name, mask)
    exclude("copy", ~copies.there)
    fits = _fits(population, question, np.flatnonzero(failed < 0))
    refused = np.zeros(len(population), dtype=bool)
    refused[[row for row, each in fits.items() if not each.feasible]] = True
    exclude("layout", refused)
    if question.rto_seconds is not None:
        exclude("size", np.isnan(copies.slow))
        exclude("rto", copies.slow > question.rto_seconds)
    exclude("spike", _near_spike(population, question.spike, failed < 0))
    return Judged(names, failed, np.flatnonzero(failed < 0), fits)


def _as_recorded(population: Population, question: Question) -> list[tuple[str, Booleans]]:
    """What the checkpoints' own records say against them."""
    ids = population.ids
    none = np.zeros(len(population), dtype=bool)
    limit = question.at_or_before_step
    return [
        ("state", ~population.committed),
        ("superseded", population.superseded),
        ("loss", population.lost),
        ("quarantine", _among(ids, question.quarantined)),
        ("suspect", _among(ids, question.suspect)),
        ("time", population.early | population.late),
        ("step", population.steps > limit if limit is not None else none),
        ("pieces", ~population.whole),
        ("alias_target", ids == question.alias_target if question.mode == PRODUCTION and len(ids) else none),
    ]


def _by_evidence(population: Population, question: Question) -> list[tuple[str, Booleans]]:
    """What the conditions, the watched score and the loss say against them."""
    found = [("condition", _among(population.ids, question.unmet))]
    if question.p_bad is not None:
        with np.errstate(invalid="ignore"):
            found += [("unscored", np.isnan(question.p_bad)), ("p_bad", question.p_bad > SAFE)]
    if question.spike is not None:
        # A curve that begins with it says nothing good of what was saved before its first point.
        began = 0 if question.spike.after_step is None else cause_within(question.spike)[1]
        found.append(("spike", (population.generations == 0) & (population.steps >= began)))
    return found


def _near_spike(population: Population, spike: Spike | None, left: Booleans) -> Booleans:
    """Those that may hold the cause of the spike already, unless nothing older is left to go back to."""
    if spike is None:
        return np.zeros(len(population), dtype=bool)
    near = population.steps >= cause_within(spike)[0]
    return np.asarray(near & (population.generations == 0) & (left & ~near).any())


def _among(ids: Integers, wanted: Any) -> Booleans:
    if not wanted:
        return np.zeros(len(ids), dtype=bool)
    return np.isin(ids, np.fromiter(wanted, np.int64, len(wanted)))


def _fits(population: Population, question: Question, rows: Integers) -> dict[int, Fit]:
    """How each row that is left fits the layout that is there now; checkpoints of one layout and format fit alike."""
    if question.target_layout is None:
        return {}
    known: dict[tuple[int | None, str | None], Fit] = {}
    found = {}
    for row in rows.tolist():
        key = population.layouts[row], population.formats[row]
        if key not in known:
            saved = question.layouts.get(key[0]) if key[0] is not None else None
            known[key] = fit(saved, key[1], question.target_layout, weights_only=question.mode == PRODUCTION)
        found[row] = known[key]
    return found


# ---- reasons


def reason_of(
    name: str,
    row: int,
    population: Population,
    copies: BestCopies,
    question: Question,
    judged: Judged,
    recorded: Recorded,
    pieces: Mapping[PieceName, Presence],
) -> str:
    """Why the filter `name` left out the checkpoint at `row`; `pieces` are its own, where that is the filter."""
    identity, step = int(population.ids[row]), int(population.steps[row])
    told: dict[str, Callable[[], str]] = {
        "state": lambda: f"it is {recorded.state}, and only a committed checkpoint can be loaded",
        "superseded": lambda: "a newer attempt went on from an earlier step, so this one is off its path",
        "loss": lambda: f"its loss is {recorded.loss_special}",
        "quarantine": lambda: "it is tagged as quarantined",
        "suspect": lambda: f"it is suspect: {question.suspect[identity]}",
        "time": lambda: f"it was saved {'before' if population.early[row] else 'after'} the time asked for",
        "step": lambda: f"step {step} lies beyond {question.at_or_before_step}",
        "pieces": lambda: _pieces_told(question.mode, pieces),
        "alias_target": lambda: "the alias points at it now",
        "condition": lambda: question.unmet[identity],
        "unscored": lambda: _unscored(step in question.alone),
        "p_bad": lambda: _may_be_bad(question, row, step),
        "spike": lambda: _spiked(step, question.spike),
        "copy": lambda: copies.why_none(identity),
        "layout": lambda: judged.fits[row].words,
        "size": lambda: "the size of its copy is unknown, so no restore time can be promised",
        "rto": lambda: _too_slow(float(copies.slow[row]), question.rto_seconds or 0.0),
    }
    return told[name]()


def _unscored(alone: bool) -> str:
    if alone:
        return "its score stands alone, since those around it contradict it: evaluate it again"
    return "no comparable finite score at or after its step, so it may be bad already"


def _spiked(step: int, spike: Spike | None) -> str:
    if spike is None or spike.after_step is None:
        return "the loss is up since its first point"
    if step > spike.after_step:
        return f"it was saved after step {spike.after_step}, and the loss is up since"
    return f"it was saved within {LEAD_STEPS} steps of the spike, where its cause is assumed to lie"


def _may_be_bad(question: Question, row: int, step: int) -> str:
    chance = f"{float(question.p_bad[row]) if question.p_bad is not None else float('nan'):.0%}"
    if step in question.scored:
        return f"the chance that it is bad already is {chance}, above {SAFE:.0%}"
    return f"nothing tells of it alone, and the next step that is scored is bad with a chance of {chance}"


def _pieces_told(mode: str, pieces: Mapping[PieceName, Presence]) -> str:
    absent = [CALLED[piece] for piece in NEEDED[mode] if pieces.get(piece) is Presence.ABSENT]
    unknown = [CALLED[piece] for piece in NEEDED[mode] if pieces.get(piece, Presence.UNKNOWN) is Presence.UNKNOWN]
    said = [f"it lacks {listed(absent)}"] if absent else []
    said += [f"nobody said whether it has {listed(unknown)}"] if unknown else []
    return f"{mode} needs it whole, and {', and '.join(said)}"


def _too_slow(slow: float, rto_seconds: float) -> str:
    limit = f"{rto_seconds:.0f} s" if rto_seconds < 60 else f"{rto_seconds / 60:.1f} min"
    return f"a restore takes up to {slow / 60:.1f} min (95 %, assumed), over {limit}"
