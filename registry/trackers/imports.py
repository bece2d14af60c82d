"""Asking for an import from a tracker."""

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from sqlalchemy.orm import Session

from registry import audit, strict_json
from registry.jobs.queue import JobRow, Wanted, ask_for_one, find_unfinished
from registry.trackers.linking import resource_of

IMPORT = "tracker.import"


def ask_for_import(session: Session, project_id: int, arguments: Mapping[str, Any], *, actor: str) -> JobRow:
    """The job that imports a place of a tracker; the one that waits or runs already where there is one."""
    key = blake2b(strict_json.canonical(arguments).encode(), digest_size=12).hexdigest()
    running = find_unfinished(session, project_id, IMPORT, key)
    if running is not None and running.state == "running":
        return running
    audit.record(
        session,
        actor=actor,
        action="tracker.import",
        project_id=project_id,
        subject_id=project_id,
        detail=dict(arguments),
    )
    resource = resource_of(arguments["kind"], arguments["uri"])
    return ask_for_one(session, project_id, Wanted(IMPORT, key, arguments, resource), asked_by=actor)
