"""Copies that are there no longer: their records stay, and everybody who was told of them is told."""

from typing import Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import audit, outbox
from registry.ids import to_text
from registry.models import Replica
from registry.storage.files import ReplicaNotFound

GONE: Final = "checkpoint.copy_gone"


def note_gone(session: Session, replica_id: int, *, actor: str) -> None:
    """Somebody removed this copy without asking here. Said again it changes nothing. Raises ReplicaNotFound."""
    query = select(Replica).where(Replica.id == replica_id).with_for_update()
    replica = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if replica is None:
        raise ReplicaNotFound(f"There is no copy {to_text(replica_id)}.")
    if replica.state in ("removed", "removed_elsewhere"):
        return
    replica.state = "removed_elsewhere"
    session.flush()
    outbox.announce(session, replica.project_id, GONE, [replica.checkpoint_id], {"uri": replica.uri})
    audit.record(
        session,
        actor=actor,
        action="replica.gone",
        project_id=replica.project_id,
        subject_id=replica.checkpoint_id,
        detail={"uri": replica.uri},
    )
