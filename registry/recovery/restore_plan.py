"""From which copy to restore a checkpoint, how long it takes against an RTO, and what of it today's layout can load."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from registry.checkpoints.detail import CheckpointDetail, get_checkpoint
from registry.checkpoints.rows import CheckpointIdentity
from registry.incidents.suspicion import Suspicion, suspect_copies_of, suspects_of
from registry.layout.cells import Verdict
from registry.layout.resharding import CALLED, COUNTER_HOLDS, NOT_SAME_SUMS, Compatibility
from registry.recovery.copies import (
    SOME,
    Option,
    Wanted,
    about,
    minutes,
    read_places,
    still_running,
    tier_in_words,
    weigh_copies,
)
from registry.recovery.drills.evidence import Proof, Reliability, read_evidence
from registry.recovery.loadable import Facts, compatibility_of, is_counter, mixed_moments, read_facts
from registry.recovery.replay import Replay, replay_of
from registry.recovery.restore_time import ASSUMED, FIXED_SECONDS
from registry.snapshots import LayoutSpec
from registry.strict_json import special_name
from registry.types import CheckpointState, PieceName, Presence
from registry.wording import listed

TRAINING: Final = (PieceName.WEIGHTS, PieceName.OPTIMIZER, PieceName.DATA_POSITION)
ONE_DRILL: Final = "What is exact by its format still wants one passed drill for each version of the software"


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """The answer. `obstacle`: why the checkpoint itself should not be loaded; '' where nothing speaks against it.

    `copies` is every recorded copy, the feasible first; `chosen` the first of them, None where none is feasible.
    `reliability` by replica, `proof` of the checkpoint: what drills show. `replay` is no part of any time.
    """

    checkpoint: CheckpointIdentity
    sentence: str
    obstacle: str
    chosen: Option | None
    copies: tuple[Option, ...]
    compatibility: Compatibility
    notes: tuple[str, ...]
    assumptions: tuple[str, ...]
    rto_seconds: float | None
    reliability: Mapping[int, Reliability]
    proof: Proof
    replay: Replay


def plan_restore(
    session: Session,
    checkpoint_id: int,
    *,
    layout: LayoutSpec | None = None,
    rto_seconds: float | None = None,
    hosts: Collection[str] = (),
) -> RestorePlan:
    """The fastest feasible copy with its predicted time, every other with why not, and the pieces one by one.

    `hosts`: the nodes that are there, which local copies need. Raises CheckpointNotFound, ContradictoryLayout.
    """
    found = get_checkpoint(session, checkpoint_id)
    facts = read_facts(session, found.project_id, [checkpoint_id])[checkpoint_id]
    fits = compatibility_of(facts, layout)
    places = read_places(session, found.project_id, [checkpoint_id]).get(checkpoint_id, [])
    evidence = read_evidence(session, found.project_id, checkpoint_id, facts.format, places)
    wanted = Wanted(
        hosts=frozenset(hosts) or None,
        rto_seconds=rto_seconds,
        is_resharded=bool(fits.changes),
        is_converted=fits.converts(TRAINING),
        suspect_replicas=frozenset(suspect_copies_of(session, [checkpoint_id])),
        drilled=evidence.drilled,
    )
    copies = weigh_copies(places, wanted)
    chosen = copies[0] if copies and copies[0].feasible else None
    obstacle = _obstacle(found, fits, suspects_of(session, [checkpoint_id]).get(checkpoint_id))
    return RestorePlan(
        checkpoint=found.checkpoint,
        sentence=_sentence(obstacle, chosen, copies, rto_seconds) + _caveat(found, fits),
        obstacle=obstacle,
        chosen=chosen,
        copies=copies,
        compatibility=fits,
        notes=_notes(found, facts, fits),
        assumptions=_assumptions(copies),
        rto_seconds=rto_seconds,
        reliability=evidence.reliability,
        proof=evidence.proof,
        replay=replay_of(session, found),
    )


def _assumptions(copies: tuple[Option, ...]) -> tuple[str, ...]:
    """What times are assumed, and which are those of drills."""
    timed = [each for each in copies if each.time is not None]
    measured = {each.place.tier: each.time.drills for each in timed if each.time is not None and each.time.drills}
    told = [
        f"From {tier_in_words(tier)}: reading, verifying and loading took what {drills} drills of this format took, in "
        f"proportion to the bytes; {FIXED_SECONDS / 60:.0f} min to notice, decide and schedule are assumed"
        for tier, drills in sorted(measured.items())
    ]
    return (*told, ASSUMED) if len(timed) > sum(each.place.tier in measured for each in timed) else tuple(told)


def _obstacle(found: CheckpointDetail, fits: Compatibility, suspicion: Suspicion | None) -> str:
    """Why this checkpoint should not be loaded, whichever copy is taken."""
    if found.state != CheckpointState.COMMITTED:
        return f"it is {found.state}, and only a committed checkpoint can be loaded"
    if suspicion is not None:
        return f"it is suspect: {suspicion.reason}"
    if found.loss is not None and not math.isfinite(found.loss):
        return f"its loss is {special_name(found.loss)}"
    if mixed := mixed_moments(found.pieces):
        return mixed
    weights = fits.pieces[PieceName.WEIGHTS]
    if weights.verdict in (Verdict.REFUSED, Verdict.IMPOSSIBLE):
        return f"its weights cannot be loaded: {weights.words}"
    return ""


def _sentence(obstacle: str, chosen: Option | None, copies: tuple[Option, ...], rto: float | None) -> str:
    if obstacle:
        return f"Do not restore it: {obstacle}."
    if not copies:
        return "It cannot be restored: no copy of it is recorded."
    if chosen is None and (there := next((each for each in copies if each.awaits), None)) is not None:
        return (
            f"Only {listed(sorted(there.awaits), SOME)} can load it, from {tier_in_words(there.place.tier)}, "
            f"{there.place.uri}. "
            f"Whether {still_running(there.awaits)} is not known here: name the hosts that are there."
        )
    if chosen is None:
        return f"No copy can be used. The nearest, on {tier_in_words(copies[0].place.tier)}: {copies[0].reason}."
    where = f"Restore it from {tier_in_words(chosen.place.tier)}, {chosen.place.uri}"
    if chosen.time is None:
        return f"{where}; how long that takes is unknown, since its size is."
    within = f", within the RTO of {minutes(rto)}" if rto is not None else ""
    return f"{where}, in {about(chosen.time.expected)} (95 %: {minutes(chosen.time.p95)}){within}."


def _caveat(found: CheckpointDetail, fits: Compatibility) -> str:
    """Which pieces that the checkpoint has the layout cannot load; '' where it loads all, or nothing."""
    stuck = [
        f"{CALLED[name]} ({fit.words})"
        for name, fit in fits.pieces.items()
        if fit.verdict in (Verdict.REFUSED, Verdict.IMPOSSIBLE) and found.pieces[name].presence != Presence.ABSENT
    ]
    if not stuck or fits.pieces[PieceName.WEIGHTS].verdict in (Verdict.REFUSED, Verdict.IMPOSSIBLE):
        return ""
    return f" In the layout asked for, this cannot be loaded: {', '.join(stuck)}."


def _notes(found: CheckpointDetail, facts: Facts, fits: Compatibility) -> tuple[str, ...]:
    notes = []
    if found.superseded:
        notes.append("It is superseded: a newer attempt went on from an earlier step")
    if is_counter(facts):
        notes.append(f"Its data position is a counter: {COUNTER_HOLDS}")
    if fits.changes:
        notes.append(f"The layout changes ({fits.told}): {NOT_SAME_SUMS}")
        notes.append(ONE_DRILL)
    if fits.assumed:
        notes.append(f"Taken as it was saved: {', '.join(fits.assumed)}")
    return tuple(notes)
