"""Who changed what. Recording a checkpoint is not audited (the checkpoint itself is the record); decisions are."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.ids import new_id, to_text
from registry.models import AuditEntry, Project


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
    """`subject` is the id of what was changed: a checkpoint, a run, a token ..., as `action` says."""

    at: datetime
    actor: str
    action: str
    project: str | None
    subject: str | None
    detail: str | None


def list_entries(
    session: Session, *, project_id: int | None = None, subject_id: int | None = None, limit: int = 50
) -> list[Entry]:
    """The newest entries first: all, those of a project, those about a subject."""
    query = select(AuditEntry, Project.name).outerjoin(Project, Project.id == AuditEntry.project_id)
    if project_id is not None:
        query = query.where(AuditEntry.project_id == project_id)
    if subject_id is not None:
        query = query.where(AuditEntry.subject_id == subject_id)
    return [
        Entry(
            row.at,
            row.actor,
            row.action,
            project,
            None if row.subject_id is None else to_text(row.subject_id),
            row.detail,
        )
        for row, project in session.execute(query.order_by(AuditEntry.id.desc()).limit(limit))
    ]
