"""Whether an alias may point at a checkpoint: committed, and not suspect unless somebody says why."""

from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry.aliases.errors import ForceWithoutReason, NotCommitted, SuspectTarget
from registry.checkpoints.errors import CheckpointNotFound
from registry.errors import FieldError
from registry.ids import to_text
from registry.incidents.suspicion import suspects_of
from registry.models import Checkpoint, CheckpointTag
from registry.types import CheckpointState

QUARANTINE_TAGS: Final = ("quarantine", "quarantined")


def require_fit(session: Session, project_id: int, checkpoint_id: int, reason: str | None, *, force: bool) -> None:
    """Raises CheckpointNotFound, NotCommitted; SuspectTarget unless it is forced with a reason, ForceWithoutReason."""
    if force and not (reason or "").strip():
        message = "a reason, for those who read the history"
        raise ForceWithoutReason(f"'force' needs {message}.", errors=[FieldError("/reason", message)])
    query = select(Checkpoint.state, Checkpoint.loss_special).where(
        Checkpoint.project_id == project_id, Checkpoint.id == checkpoint_id
    )
    found = session.execute(query).one_or_none()
    if found is None:
        raise CheckpointNotFound(f"This project has no checkpoint {to_text(checkpoint_id)}.")
    if found.state != CheckpointState.COMMITTED:
        raise NotCommitted(f"Checkpoint {to_text(checkpoint_id)} is {found.state}; commit it first.")
    why = _suspicion(session, project_id, checkpoint_id, found.loss_special)
    if why and not force:
        raise SuspectTarget(
            f"Checkpoint {to_text(checkpoint_id)} is suspect: {why}. Choose another one (POST /rollback ranks them), "
            'or send "force": true with a reason.'
        )


def _suspicion(session: Session, project_id: int, checkpoint_id: int, loss_special: str | None) -> str:
    """Why nobody should serve this checkpoint; '' where nothing speaks against it."""
    if loss_special is not None:
        return f"its loss is {loss_special}"
    tagged = select(CheckpointTag.name).where(
        CheckpointTag.project_id == project_id,
        CheckpointTag.checkpoint_id == checkpoint_id,
        CheckpointTag.name.in_(QUARANTINE_TAGS),
    )
    if session.scalars(tagged.limit(1)).one_or_none() is not None:
        return "it is tagged as quarantined"
    suspicion = suspects_of(session, [checkpoint_id]).get(checkpoint_id)
    return suspicion.reason if suspicion is not None else ""
