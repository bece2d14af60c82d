"""What an attempt restored of the checkpoint that it loaded, as it says itself.

A load that changes nothing raises no error: an attempt that resumed without a receipt is unconfirmed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.errors import FieldError, Invalid
from registry.ids import new_id, to_text
from registry.models import Attempt, Checkpoint, ResumeReceipt, Run
from registry.resume_points import ResumePoint, resolve
from registry.runs import RunNotFound
from registry.types import PieceName
from registry.upsert import insert_new

# From the worst to the best: of several receipts the worst word of each piece counts.
WORDS: Final = ("absent", "fresh", "unknown", "restored")


class BadReceipt(Invalid):
    code = "bad-receipt"
    title = "The receipt cannot be kept so"

    @classmethod
    def at(cls, pointer: str, message: str) -> "BadReceipt":
        return cls(f"At {pointer}: {message}.", errors=[FieldError(pointer, message)])


@dataclass(frozen=True)
class NewReceipt:
    """`loaded`: the checkpoint, or where its record will be found; None: what the attempt said that it resumed from.

    The attempt is named by number or key; neither: the run's newest. Pieces that are left out are unknown.
    """

    loaded: ResumePoint | None = None
    attempt: int | None = None
    attempt_key: str | None = None
    pieces: Mapping[PieceName, str] | None = None
    restore_seconds: float | None = None
    note: str | None = None
    restored_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """A receipt as it is recorded. `loaded.checkpoint_id` is None where that record has not arrived."""

    id: int
    run_id: int
    attempt_id: int
    attempt: int
    loaded: ResumePoint
    pieces: Mapping[PieceName, str]
    restore_seconds: float | None
    note: str | None
    restored_at: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Confirmation:
    """What the receipts of an attempt say together. `state`: confirmed, partial (a piece was not restored), or
    unconfirmed (no receipt, or one that does not know)."""

    state: str
    pieces: Mapping[PieceName, str]
    restore_seconds: float | None = None
    receipts: int = 0


UNCONFIRMED: Final = Confirmation("unconfirmed", dict.fromkeys(PieceName, "unknown"))


def record_receipt(session: Session, run_id: int, new: NewReceipt) -> tuple[ReceiptRow, bool]:
    """The receipt, and whether it was made just now: the same one again is one. Raises RunNotFound, BadReceipt."""
    run = session.get(Run, run_id)
    if run is None:
        raise RunNotFound(f"There is no run {to_text(run_id)}. POST /api/v1/runs makes one.")
    attempt = _attempt(session, run, new)
    loaded = _loaded(session, run, attempt, new)
    row = _row(run, attempt, loaded, new)
    made = bool(insert_new(session, ResumeReceipt, [row]))
    query = select(ResumeReceipt).where(
        ResumeReceipt.project_id == run.project_id,
        ResumeReceipt.attempt_id == attempt.id,
        ResumeReceipt.digest == row["digest"],
    )
    return _read(session.scalars(query).one(), attempt.number), made


def list_receipts(session: Session, project_id: int, run_id: int) -> list[ReceiptRow]:
    """The receipts of a run, in the order of their attempts, then of their arrival."""
    query = (
        select(ResumeReceipt, Attempt.number)
        .join(Attempt, Attempt.id == ResumeReceipt.attempt_id)
        .where(ResumeReceipt.project_id == project_id, ResumeReceipt.run_id == run_id)
        .order_by(Attempt.number, ResumeReceipt.id)
    )
    return [_read(row, number) for row, number in session.execute(query)]


def confirmations(session: Session, project_id: int, run_id: int) -> dict[int, Confirmation]:
    """By attempt number, for those that have a receipt; one without that resumed is UNCONFIRMED."""
    found: dict[int, list[ReceiptRow]] = {}
    for row in list_receipts(session, project_id, run_id):
        found.setdefault(row.attempt, []).append(row)
    return {number: _together(rows) for number, rows in found.items()}


def _together(rows: Sequence[ReceiptRow]) -> Confirmation:
    pieces = {piece: min((row.pieces[piece] for row in rows), key=WORDS.index) for piece in PieceName}
    said = set(pieces.values())
    state = "partial" if said & {"absent", "fresh"} else "confirmed" if said == {"restored"} else "unconfirmed"
    seconds = [row.restore_seconds for row in rows if row.restore_seconds is not None]
    return Confirmation(state, pieces, max(seconds, default=None), len(rows))


def _attempt(session: Session, run: Run, new: NewReceipt) -> Attempt:
    query = select(Attempt).where(Attempt.project_id == run.project_id, Attempt.run_id == run.id)
    pointer, wanted = "/attempt", "no attempt yet; open one first"
    if new.attempt is not None:
        query, wanted = query.where(Attempt.number == new.attempt), f"no attempt {new.attempt}"
    elif new.attempt_key is not None:
        query = query.where(Attempt.key == new.attempt_key)
        pointer, wanted = "/attempt_key", "no attempt of this key; open it first"
    found = session.scalars(query.order_by(Attempt.number.desc()).limit(1)).first()
    if found is None:
        raise BadReceipt.at(pointer, f"run {to_text(run.id)} has {wanted}")
    return found


def _loaded(session: Session, run: Run, attempt: Attempt, new: NewReceipt) -> ResumePoint:
    if new.loaded is None:
        if attempt.resumed_from_step is None:
            raise BadReceipt.at("/checkpoint_id", f"attempt {attempt.number} did not say what it loaded: say it here")
        return ResumePoint(
            attempt.resumed_from_checkpoint_id,
            attempt.resumed_from_run,
            attempt.resumed_from_attempt,
            attempt.resumed_from_step,
            attempt.resumed_from_kind,
        )
    if new.loaded.checkpoint_id is not None:
        query = select(Checkpoint.id).where(
            Checkpoint.project_id == run.project_id, Checkpoint.id == new.loaded.checkpoint_id
        )
        if session.scalars(query).first() is None:
            raise BadReceipt.at("/checkpoint_id", "this project has no such checkpoint")
    resolved = resolve(session, run, new.loaded)
    assert resolved is not None
    return resolved


def _row(run: Run, attempt: Attempt, loaded: ResumePoint, new: NewReceipt) -> dict[str, object]:
    given = new.pieces or {}
    said = {
        "loaded_run": loaded.run,
        "loaded_attempt": loaded.attempt,
        "loaded_step": loaded.step,
        "loaded_kind": loaded.kind,
        **{piece.value: given.get(piece, "unknown") for piece in PieceName},
        "restore_seconds": new.restore_seconds,
        "note": new.note,
    }
    restored_at = new.restored_at.isoformat() if new.restored_at is not None else None
    text = strict_json.canonical({**said, "restored_at": restored_at})
    return {
        **said,
        "id": new_id(),
        "project_id": run.project_id,
        "run_id": run.id,
        "attempt_id": attempt.id,
        "digest": blake2b(text.encode(), digest_size=16).digest(),
        "checkpoint_id": loaded.checkpoint_id,
        "restored_at": new.restored_at,
        "created_at": now(),
    }


def _read(row: ResumeReceipt, number: int) -> ReceiptRow:
    return ReceiptRow(
        id=row.id,
        run_id=row.run_id,
        attempt_id=row.attempt_id,
        attempt=number,
        loaded=ResumePoint(row.checkpoint_id, row.loaded_run, row.loaded_attempt, row.loaded_step, row.loaded_kind),
        pieces={piece: getattr(row, piece.value) for piece in PieceName},
        restore_seconds=row.restore_seconds,
        note=row.note,
        restored_at=row.restored_at,
        created_at=row.created_at,
    )
