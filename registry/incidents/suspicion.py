"""Which checkpoints are suspect: attempts that loaded one failed alike, twice, before they had saved anything.

What struck from outside (a power failure, a preemption, too little memory) says nothing of the checkpoint. Neither
does a failure that befalls attempts that loaded other checkpoints too: then the job is at fault, and the suspicion is
lifted.

Who chooses a checkpoint to load leaves out those of `suspects_of`, and the copies of `suspect_copies_of`.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from registry import audit, outbox
from registry.db import now
from registry.ids import new_id, to_text
from registry.incidents.causes import CAUSES, cause_of
from registry.incidents.shapes import SERVICE
from registry.models import Attempt, Checkpoint, CheckpointSuspicion, Incident, Replica
from registry.types import CheckpointState
from registry.upsert import chunks

ENOUGH: Final = 2
SUSPECTED: Final = "checkpoint.suspected"
CLEARED: Final = "checkpoint.cleared"
_OUTSIDE: Final = tuple(cause.name for cause in CAUSES.values() if cause.outside)


@dataclass(frozen=True, slots=True)
class Suspicion:
    """`replica_id`: the one copy that was loaded each time; None: the checkpoint as a whole. `signature` '': a person
    said so."""

    checkpoint_id: int
    replica_id: int | None
    signature: str
    reason: str
    incidents: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Instead:
    """What to load instead of a suspect: another copy of the same checkpoint, or an older checkpoint."""

    checkpoint_id: int
    step: int
    replica_id: int | None
    uri: str | None
    tier: str | None
    sentence: str


def suspects_of(session: Session, checkpoint_ids: Collection[int]) -> dict[int, Suspicion]:
    """Those of the checkpoints that are suspect as a whole, by id.

    Where only one copy is suspect and another is present, the checkpoint is none: see `suspect_copies_of`.
    """
    found: dict[int, Suspicion] = {}
    of_a_copy: dict[int, list[Suspicion]] = {}
    for each in _standing(session, checkpoint_ids):
        if each.replica_id is None:
            found.setdefault(each.checkpoint_id, each)
        else:
            of_a_copy.setdefault(each.checkpoint_id, []).append(each)
    open_ones = {key: rows for key, rows in of_a_copy.items() if key not in found}
    others = _with_another_copy(
        session, {key: {row.replica_id or 0 for row in rows} for key, rows in open_ones.items()}
    )
    return found | {key: rows[0] for key, rows in open_ones.items() if key not in others}


def suspect_copies_of(session: Session, checkpoint_ids: Collection[int]) -> dict[int, Suspicion]:
    """The suspect copies of these checkpoints, by replica id."""
    return {each.replica_id: each for each in _standing(session, checkpoint_ids) if each.replica_id is not None}


def weigh(session: Session, incident: Incident) -> None:
    """Mark what failed like this incident, or lift the marks, by all incidents of its run that have its signature."""
    if incident.signature is None:
        return
    told = (
        select(
            Incident.checkpoint_id,
            func.count().label("amount"),
            func.count(Incident.replica_id.distinct()).label("copies"),
            func.count(Incident.replica_id).label("named"),
            func.max(Incident.replica_id).label("replica_id"),
        )
        .where(
            Incident.project_id == incident.project_id,
            Incident.run_id == incident.run_id,
            Incident.signature == incident.signature,
            Incident.fruitless.is_(True),
            Incident.cause.not_in(_OUTSIDE),
        )
        .group_by(Incident.checkpoint_id)
    )
    rows = session.execute(told).all()
    if len(rows) > 1:  # whatever was loaded, it failed like this
        _lift(session, incident.project_id, [row.checkpoint_id for row in rows], incident.signature)
    elif rows and rows[0].checkpoint_id is not None and rows[0].amount >= ENOUGH:
        only = rows[0].replica_id if rows[0].copies == 1 and rows[0].named == rows[0].amount else None
        _mark(session, incident, rows[0].checkpoint_id, only, rows[0].amount)
    elif incident.cause in _OUTSIDE:  # somebody has named the cause since, and too few of the others are left
        _lift(session, incident.project_id, [incident.checkpoint_id], incident.signature)


def say_suspect(session: Session, checkpoint: Checkpoint, *, suspect: bool, reason: str, actor: str) -> None:
    """A person's word: suspect as a whole, or above suspicion again, whatever the incidents say."""
    if suspect and _write(session, checkpoint.project_id, checkpoint.id, None, "", reason, 0):
        outbox.announce(session, checkpoint.project_id, SUSPECTED, [checkpoint.id], {"reason": reason})
    if not suspect:
        _lift(session, checkpoint.project_id, [checkpoint.id], None, by=actor)
    audit.record(
        session,
        actor=actor,
        action="checkpoint.suspect" if suspect else "checkpoint.clear",
        project_id=checkpoint.project_id,
        subject_id=checkpoint.id,
        detail={"reason": reason},
    )


def advise(session: Session, suspicion: Suspicion) -> Instead | None:
    """Another copy of the same checkpoint where only one is suspect, else the newest older live checkpoint."""
    if suspicion.replica_id is not None:
        query = select(Replica).where(
            Replica.checkpoint_id == suspicion.checkpoint_id,
            Replica.state == "present",
            Replica.verification != "corrupt",
            Replica.id != suspicion.replica_id,
        )
        copies = [
            copy for copy in session.scalars(query) if copy.id not in suspect_copies_of(session, [copy.checkpoint_id])
        ]
        if copies:
            return _another_copy(session, min(copies, key=lambda copy: _ORDER.index(copy.tier)))
    return _older(session, session.get_one(Checkpoint, suspicion.checkpoint_id))


_ORDER: Final = ("shared", "object", "local")


def _another_copy(session: Session, copy: Replica) -> Instead:
    step = session.get_one(Checkpoint, copy.checkpoint_id).step
    sentence = f"Load another copy of step {step}: the one on {copy.tier} storage, {copy.uri}."
    return Instead(copy.checkpoint_id, step, copy.id, copy.uri, copy.tier, sentence)


def _older(session: Session, suspect: Checkpoint) -> Instead | None:
    query = (
        select(Checkpoint.id, Checkpoint.step)
        .join(Attempt, Attempt.id == Checkpoint.attempt_id)
        .where(
            Checkpoint.project_id == suspect.project_id,
            Checkpoint.run_id == suspect.run_id,
            Checkpoint.state == CheckpointState.COMMITTED.value,
            Checkpoint.step < suspect.step,
            Checkpoint.attempt_number <= suspect.attempt_number,
            Attempt.live_through_step.is_(None) | (Checkpoint.step <= Attempt.live_through_step),
        )
        .order_by(Checkpoint.attempt_number.desc(), Checkpoint.step.desc(), Checkpoint.kind)
        .limit(50)
    )
    rows = session.execute(query).all()
    suspects = suspects_of(session, [row.id for row in rows])
    for row in rows:
        if row.id not in suspects:
            sentence = f"Go back to the older checkpoint at step {row.step} ({to_text(row.id)})."
            return Instead(row.id, row.step, None, None, None, sentence)
    return None


def _standing(session: Session, checkpoint_ids: Collection[int]) -> list[Suspicion]:
    found: list[Suspicion] = []
    for chunk in chunks(dict.fromkeys(checkpoint_ids)):
        query = (
            select(CheckpointSuspicion)
            .join(
                Checkpoint,
                (Checkpoint.project_id == CheckpointSuspicion.project_id)
                & (Checkpoint.id == CheckpointSuspicion.checkpoint_id),
            )
            .where(Checkpoint.id.in_(chunk), CheckpointSuspicion.lifted_at.is_(None))
            .order_by(CheckpointSuspicion.id)
        )
        for row in session.scalars(query):
            found.append(
                Suspicion(row.checkpoint_id, row.replica_id, row.signature, row.reason, row.incidents, row.since)
            )
    return found


def _with_another_copy(session: Session, suspect: dict[int, set[int]]) -> set[int]:
    """Those checkpoints that have a present copy besides their suspect ones."""
    query = select(Replica.checkpoint_id, Replica.id).where(
        Replica.checkpoint_id.in_(suspect), Replica.state == "present", Replica.verification != "corrupt"
    )
    return {checkpoint for checkpoint, replica in session.execute(query) if replica not in suspect[checkpoint]}


def _mark(session: Session, incident: Incident, checkpoint_id: int, replica_id: int | None, amount: int) -> None:
    what = "this copy of it" if replica_id is not None else "it"
    reason = (
        f"{amount} attempts that loaded {what} failed alike before they had saved anything: "
        f"{cause_of(incident.cause).title}"
    )
    if _write(session, incident.project_id, checkpoint_id, replica_id, incident.signature or "", reason, amount):
        outbox.announce(session, incident.project_id, SUSPECTED, [checkpoint_id], {"reason": reason})


def _write(
    session: Session,
    project_id: int,
    checkpoint_id: int,
    replica_id: int | None,
    signature: str,
    reason: str,
    amount: int,
) -> bool:
    """Whether it is a new suspicion. One that a person lifted stays lifted until further incidents add to it."""
    row = session.scalars(
        select(CheckpointSuspicion).where(
            CheckpointSuspicion.project_id == project_id,
            CheckpointSuspicion.checkpoint_id == checkpoint_id,
            CheckpointSuspicion.signature == signature,
        )
    ).one_or_none()
    if row is None:
        row = CheckpointSuspicion(
            id=new_id(), project_id=project_id, checkpoint_id=checkpoint_id, signature=signature, since=now()
        )
        session.add(row)
        fresh = True
    else:
        fresh = row.lifted_at is not None and (amount > row.incidents or amount == 0)
        if row.lifted_at is not None and not fresh:
            return False
        if fresh:
            row.since = now()
    row.replica_id, row.reason, row.incidents = replica_id, reason, amount
    row.lifted_at = row.lifted_by = None
    session.flush()
    return fresh


def _lift(
    session: Session, project_id: int, checkpoint_ids: Sequence[int | None], signature: str | None, *, by: str = SERVICE
) -> None:
    condition = [
        CheckpointSuspicion.project_id == project_id,
        CheckpointSuspicion.checkpoint_id.in_([each for each in checkpoint_ids if each is not None]),
        CheckpointSuspicion.lifted_at.is_(None),
    ]
    if signature is not None:
        condition.append(CheckpointSuspicion.signature == signature)
    lift = update(CheckpointSuspicion).where(*condition).values(lifted_at=now(), lifted_by=by)
    lifted = session.scalars(lift.returning(CheckpointSuspicion.checkpoint_id))
    outbox.announce(session, project_id, CLEARED, sorted(set(lifted)))
