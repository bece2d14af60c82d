"""The hard filters of a rollback: what may be a candidate at all, and why what may not is left out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from registry.models import Layout
from registry.recovery.onset import SAFE
from registry.recovery.ranking import P_OK
from registry.recovery.reshape import fit
from registry.recovery.restore_time import restore_time
from registry.recovery.scope import Copy, Seen
from registry.snapshots import LayoutSpec
from registry.types import CheckpointState, PieceName, Presence, Tier

TRAINING: Final = "training"
PRODUCTION: Final = "production"

# The pieces that each mode needs, and what each filter is loosened by.
NEEDED: Final = {
    TRAINING: (PieceName.WEIGHTS, PieceName.OPTIMIZER, PieceName.DATA_POSITION),
    PRODUCTION: (PieceName.WEIGHTS,),
}
LOOSEN: Final = {
    "state": "commit a pending checkpoint",
    "superseded": "fork a new run from a superseded checkpoint, if its branch is wanted after all",
    "loss": "look at what the loss did: nothing finite is left",
    "quarantine": "remove the quarantine tag of a checkpoint that has been cleared",
    "time": "widen 'after' and 'before'",
    "step": "raise 'at_or_before_step'",
    "pieces": "record the pieces of the checkpoints, or ask in production mode, which needs weights only",
    "copy": "record or restore a copy of one of the checkpoints",
    "layout": "ask for another 'target_layout', or convert a checkpoint first",
    "condition": "loosen the conditions",
    "unscored": "evaluate the newest checkpoints, or ask without 'watch'",
    "p_bad": "evaluate the newest of them again, or ask without 'watch'",
    "rto": "allow a longer 'rto_seconds', or record the sizes of the copies",
    "alias_target": "let the alias have another checkpoint to go back to",
}


@dataclass(frozen=True, slots=True)
class Question:
    """What the filters hold each checkpoint against. `unmet` and `p_bad` are by checkpoint id."""

    mode: str
    after: datetime | None
    before: datetime | None
    at_or_before_step: int | None
    target_layout: LayoutSpec | None
    rto_seconds: float | None
    alias_target: int | None
    unmet: Mapping[int, str]
    watched: bool
    p_bad: Mapping[int, float]
    scanned: bool
    layouts: Mapping[int, Layout]


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint that every filter let through, and the copy it would be loaded from. `minutes` None: unknown."""

    seen: Seen
    copy: Copy
    minutes: float | None
    evidence: str
    notes: tuple[str, ...]


def judge(seen: Seen, copies: Sequence[Copy], question: Question) -> tuple[tuple[str, str], Kept | None]:
    """((filter, reason), None) for the first filter that leaves it out, else an empty pair and what is kept."""
    refusal = _refused_as_recorded(seen, question) or _refused_by_evidence(seen, question)
    if refusal is not None:
        return refusal, None
    usable = [each for each in copies if each.state == "present" and each.verification != "corrupt"]
    if not usable:
        return ("copy", _no_copy(copies)), None
    saved = question.layouts.get(seen.layout_id) if seen.layout_id is not None else None
    notes: list[str] = []
    if question.target_layout is not None:
        fits = fit(saved, seen.format, question.target_layout, weights_only=question.mode == PRODUCTION)
        if not fits.feasible:
            return ("layout", fits.words), None
        notes += [fits.words] if fits.words else []
    copy = min(usable, key=_preference)
    time = restore_time(copy.bytes, Tier(copy.tier))
    if question.rto_seconds is not None:
        if time is None:
            return ("rto", "the size of its copy is unknown, so no restore time can be promised"), None
        if time.p95 > question.rto_seconds:
            late = (
                f"a restore takes up to {time.p95 / 60:.1f} min (95 %, assumed), over {question.rto_seconds / 60:.1f}"
            )
            return ("rto", late), None
    if copy.tier == Tier.LOCAL:
        notes.append(
            f"its copy is on the local disks of {copy.host or 'hosts nobody named'}: usable while they survive"
        )
    kept = Kept(seen, copy, time.expected / 60 if time is not None else None, _evidence(copy), tuple(notes))
    return ("", ""), kept


def _refused_as_recorded(seen: Seen, question: Question) -> tuple[str, str] | None:
    """What the checkpoint's own record says against it."""
    if seen.state != CheckpointState.COMMITTED:
        return "state", f"it is {seen.state}, and only a committed checkpoint can be loaded"
    if seen.superseded:
        return "superseded", "a newer attempt went on from an earlier step, so this one is off its path"
    if seen.loss_special is not None:
        return "loss", f"its loss is {seen.loss_special}"
    if seen.quarantined:
        return "quarantine", "it is tagged as quarantined"
    at = seen.identity.saved_at
    if question.after is not None and at < question.after:
        return "time", "it was saved before the time asked for"
    if question.before is not None and at >= question.before:
        return "time", "it was saved after the time asked for"
    if question.at_or_before_step is not None and seen.step > question.at_or_before_step:
        return "step", f"step {seen.step} lies beyond {question.at_or_before_step}"
    missing = [piece for piece in NEEDED[question.mode] if seen.pieces[piece] is not Presence.PRESENT]
    if missing:
        said = ", ".join(f"{piece.value} is {seen.pieces[piece].value}" for piece in missing)
        return "pieces", f"{question.mode} needs it whole, and {said}"
    if seen.id == question.alias_target and question.mode == PRODUCTION:
        return "alias_target", "the alias points at it now"
    return None


def _refused_by_evidence(seen: Seen, question: Question) -> tuple[str, str] | None:
    """What the conditions and the watched score say against it."""
    if seen.id in question.unmet:
        return "condition", question.unmet[seen.id]
    if question.scanned:
        bad = question.p_bad.get(seen.id)
        if bad is None:
            return "unscored", "nothing was evaluated at or after its step, so it may be bad already"
        if bad > SAFE:
            return "p_bad", f"P(already bad) is {bad:.0%}, above {SAFE:.0%}"
    return None


def _no_copy(copies: Sequence[Copy]) -> str:
    if not copies:
        return "no copy of it is recorded as present"
    if any(each.verification == "corrupt" for each in copies):
        return "its only copies are corrupt"
    return "its only copy is partial: the parts do not cover every rank"


def _preference(copy: Copy) -> tuple[bool, float, float, str]:
    """Best evidence first, then the fastest; local disks only where nothing else is as good, since nodes are lost."""
    time = restore_time(copy.bytes, Tier(copy.tier))
    return copy.tier == Tier.LOCAL, -P_OK[_evidence(copy)], time.expected if time else math.inf, copy.uri


def _evidence(copy: Copy) -> str:
    return "verified hash" if copy.verification == "verified" else "none"
