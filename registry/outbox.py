"""Events written with the change they tell of, in its transaction, and delivered later by a worker."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.ids import new_id
from registry.models import OutboxEvent
from registry.upsert import insert_all


def announce(
    session: Session, project_id: int, topic: str, subject_ids: Sequence[int], detail: dict[str, Any] | None = None
) -> None:
    """One event per subject, such as checkpoint.committed."""
    payload, at = strict_json.canonical(detail or {}), now()
    insert_all(
        session,
        OutboxEvent,
        [
            {
                "id": new_id(),
                "project_id": project_id,
                "topic": topic,
                "subject_id": subject_id,
                "payload": payload,
                "created_at": at,
            }
            for subject_id in subject_ids
        ],
    )
