"""Which checkpoints a launch can go on from, and why not from the others: the filters of a resume."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.incidents.suspicion import Suspicion, suspect_copies_of, suspects_of
from registry.layout.cells import Verdict
from registry.layout.resharding import CALLED, COUNTER_HOLDS, Compatibility
from registry.models import CheckpointTag
from registry.recovery.copies import Option, Place, Wanted, read_places, weigh_copies
from registry.recovery.loadable import (
    CONSEQUENCES,
    Facts,
    compatibility_of,
    counter_broken,
    is_counter,
    mixed_moments,
    read_facts,
)
from registry.recovery.population import QUARANTINE_TAGS
from registry.recovery.reshape import judged
from registry.recovery.resume_path import PathRow
from registry.recovery.resume_shapes import NEEDED, LeftOut, ResumeCandidate, ResumeQuestion
from registry.types import CheckpointState, PieceName, Presence


@dataclass
class Found:
    """What was found so far."""

    candidates: list[ResumeCandidate] = field(default_factory=list)
    excluded: list[LeftOut] = field(default_factory=list)
    considered: int = 0
    newest_step: int | None = None


def judge_page(
    session: Session, project_id: int, rows: Sequence[PathRow], question: ResumeQuestion, found: Found
) -> None:
    ids = [row.identity.id for row in rows]
    facts = read_facts(session, project_id, ids)
    places = read_places(session, project_id, ids)
    suspects, bad_copies = suspects_of(session, ids), frozenset(suspect_copies_of(session, ids))
    quarantined = _quarantined(session, project_id, ids)
    for row in rows:
        number = row.identity.id
        found.considered += 1
        found.newest_step = max(found.newest_step or 0, row.identity.step)
        refusal = _refused(row, facts[number], suspects.get(number), number in quarantined, question)
        if refusal is None:
            kept = _fitting(row, facts[number], places.get(number, ()), bad_copies, question, found)
            if isinstance(kept, ResumeCandidate):
                found.candidates.append(kept)
                continue
            refusal = kept
        if len(found.candidates) < question.limit:
            found.excluded.append(LeftOut(row.identity, *refusal))


def _quarantined(session: Session, project_id: int, ids: Collection[int]) -> set[int]:
    query = select(CheckpointTag.checkpoint_id).where(
        CheckpointTag.project_id == project_id,
        CheckpointTag.checkpoint_id.in_(ids),
        CheckpointTag.name.in_(QUARANTINE_TAGS),
    )
    return set(session.scalars(query))


def _refused(
    row: PathRow, facts: Facts, suspicion: Suspicion | None, quarantined: bool, question: ResumeQuestion
) -> tuple[str, str] | None:
    """(filter, reason) for the first that speaks against the checkpoint itself."""
    if row.identity.id in question.skip:
        return "unreadable", "a host of this launch could not read it"
    if row.state != CheckpointState.COMMITTED:
        return "state", f"it is {row.state}: its save was never committed"
    if row.loss_special is not None:
        return "loss", f"its loss is {row.loss_special}"
    if quarantined:
        return "quarantine", "it is tagged as quarantined"
    if suspicion is not None:
        return "suspect", f"it is suspect: {suspicion.reason}"
    if mixed := mixed_moments(facts.pieces):
        return "moment", mixed
    return _missing_piece(facts, question) or _broken_counter(facts, question)


def _missing_piece(facts: Facts, question: ResumeQuestion) -> tuple[str, str] | None:
    missing = [name for name in question.needed if facts.presence[name] is not Presence.PRESENT]
    if not missing:
        return None
    told = "; ".join(
        f"{CALLED[name]} {'is absent' if facts.presence[name] is Presence.ABSENT else 'may be absent, nobody said'}, "
        f"so {CONSEQUENCES[name]}"
        for name in missing
    )
    return "pieces", told


def _broken_counter(facts: Facts, question: ResumeQuestion) -> tuple[str, str] | None:
    """A counter of samples is no position any more where data, blend, seed or batch size are others."""
    if question.config is None or not is_counter(facts) or PieceName.DATA_POSITION not in question.require:
        return None
    changed = counter_broken(facts.config, question.config)
    if not changed:
        return None
    return "data_position", f"its data position is a counter of samples, which no longer counts: {changed}"


def _fitting(
    row: PathRow,
    facts: Facts,
    places: Sequence[Place],
    bad_copies: frozenset[int],
    question: ResumeQuestion,
    found: Found,
) -> ResumeCandidate | tuple[str, str]:
    fits = compatibility_of(facts, question.layout, question.config)
    needed = question.needed
    fit = judged(fits, needed)
    if not fit.feasible:
        return "layout", fit.words
    wanted = Wanted(
        hosts=question.hosts or None,
        rto_seconds=question.rto_seconds,
        is_resharded=bool(fits.changes),
        is_converted=fits.converts(needed),
        suspect_replicas=bad_copies,
    )
    copies = weigh_copies(places, wanted)
    if not copies or not copies[0].feasible:
        return ("copy", "no copy of it is recorded") if not copies else _no_copy(copies, question)
    return ResumeCandidate(
        checkpoint=row.identity,
        rank=len(found.candidates) + 1,
        steps_behind=(found.newest_step or 0) - row.identity.step,
        copies=copies,
        compatibility=fits,
        notes=_notes(facts, fits, fit.words, question),
    )


def _no_copy(copies: Sequence[Option], question: ResumeQuestion) -> tuple[str, str]:
    slow = question.rto_seconds is not None and any(
        each.place.state == "present" and each.place.verification != "corrupt" for each in copies
    )
    told = "; ".join(f"on {each.place.tier}: {each.reason}" for each in copies[:3])
    return ("rto" if slow else "copy"), told


def _notes(facts: Facts, fits: Compatibility, words: str, question: ResumeQuestion) -> tuple[str, ...]:
    notes = [f"{words[0].upper()}{words[1:]}"] if words else []
    notes += [
        f"{CALLED[name].capitalize()}: {fits.pieces[name].words}"
        for name in question.needed
        if fits.changes and fits.pieces[name].words and not (name is PieceName.DATA_POSITION and is_counter(facts))
    ]
    if facts.presence[PieceName.RANDOM_STATE] is not Presence.PRESENT:
        notes.append(f"The random state is {facts.presence[PieceName.RANDOM_STATE]}: it starts afresh")
    elif fits.pieces[PieceName.RANDOM_STATE].verdict is Verdict.REFUSED:
        notes.append(f"The random state: {fits.pieces[PieceName.RANDOM_STATE].words}")
    if is_counter(facts):
        unsaid = question.config is None or not facts.config
        held = "these were not compared" if unsaid else "as far as both configs say, they are"
        rests = fits.pieces[PieceName.DATA_POSITION].words or COUNTER_HOLDS
        notes.append(f"Its data position is a counter: {rests}; {held}")
    left = [name for name in NEEDED if name not in question.needed]
    notes += [
        f"Not asked for: {CALLED[name]} ({facts.presence[name]}); without it, {CONSEQUENCES[name]}"
        for name in left
        if facts.presence[name] is not Presence.PRESENT
    ]
    return tuple(notes)
