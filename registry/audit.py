"""Who changed what. Recording a checkpoint is not audited (the checkpoint itself is the record); decisions are."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.ids import new_id
from registry.models import AuditEntry


def record(
    session: Session,
    *,
    actor: str,
    action: str,
    project_id: int | None = None,
    subject_id: int | None = None,
    detail: dict[str, Any] | None = None,
) -> None:
    """One entry; `detail` holds values as JSON and never a secret."""
    session.add(
        AuditEntry(
            id=new_id(),
            project_id=project_id,
            at=now(),
            actor=actor,
            action=action,
            subject_id=subject_id,
            detail=None if detail is None else strict_json.canonical(detail),
        )
    )


@dataclass(frozen=True)
class Entry:
    at: datetime
    actor: str
    action: str
    detail: str | None


def list_entries(session: Session, *, limit: int = 50) -> list[Entry]:
    """The newest entries first."""
    rows = session.scalars(select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit))
    return [Entry(row.at, row.actor, row.action, row.detail) for row in rows]
