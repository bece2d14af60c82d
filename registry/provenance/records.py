"""Decision records: an answer kept with its question, as it was given. Later scores and moves change nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.errors import Invalid, NotFound
from registry.ids import new_id, to_text
from registry.models import Decision, Project
from registry.upsert import insert_all

MAX_BYTES: Final = 8 * 1024 * 1024  # of an answer as JSON


class DecisionNotFound(NotFound):
    code = "decision-not-found"
    title = "There is no such record"


class AnswerTooLarge(Invalid):
    code = "answer-too-large"
    title = "The answer is too large to keep"


@dataclass(frozen=True, slots=True)
class DecisionRow:
    """A kept answer. `project_ids`: the projects that it tells of; whoever may see all of them may see it."""

    id: int
    project: str
    project_ids: tuple[int, ...]
    kind: str
    request: Mapping[str, Any]
    answer: Mapping[str, Any]
    note: str | None
    created_by: str
    created_at: datetime


def keep_decision(
    session: Session,
    *,
    project_id: int,
    other_project_id: int | None = None,
    kind: str,
    request: Mapping[str, Any],
    answer: Mapping[str, Any],
    note: str | None,
    actor: str,
) -> int:
    """The id of the record. Raises AnswerTooLarge."""
    text = strict_json.canonical(answer)
    if len(text) > MAX_BYTES:
        raise AnswerTooLarge(
            f"The answer has {len(text):,} characters; at most {MAX_BYTES:,} are kept. Ask for fewer rows (limit)."
        )
    identity = new_id()
    row = {
        "id": identity,
        "project_id": project_id,
        "other_project_id": None if other_project_id == project_id else other_project_id,
        "kind": kind,
        "request": strict_json.pack(strict_json.canonical(request)),
        "answer": strict_json.pack(text),
        "note": note,
        "created_by": actor,
        "created_at": now(),
    }
    insert_all(session, Decision, [row])
    return identity


def get_decision(session: Session, decision_id: int) -> DecisionRow:
    """Raises DecisionNotFound."""
    query = select(Decision, Project.name).join(Project, Project.id == Decision.project_id)
    found = session.execute(query.where(Decision.id == decision_id)).one_or_none()
    if found is None:
        raise DecisionNotFound(f"There is no record {to_text(decision_id)}. POST /api/v1/decisions keeps one.")
    return _row(*found)


def list_decisions(
    session: Session, project_ids: frozenset[int] | None, *, before: int | None = None, limit: int = 100
) -> list[DecisionRow]:
    """The newest records of projects (None: of all), the newest first; `before`: only with a smaller id."""
    query = select(Decision, Project.name).join(Project, Project.id == Decision.project_id)
    if project_ids is not None:
        own = sorted(project_ids)
        query = query.where(
            Decision.project_id.in_(own), Decision.other_project_id.is_(None) | Decision.other_project_id.in_(own)
        )
    if before is not None:
        query = query.where(Decision.id < before)
    return [_row(*each) for each in session.execute(query.order_by(Decision.id.desc()).limit(limit))]


def _row(row: Decision, project: str) -> DecisionRow:
    others = () if row.other_project_id is None else (row.other_project_id,)
    return DecisionRow(
        row.id,
        project,
        (row.project_id, *others),
        row.kind,
        strict_json.unpack(row.request),
        strict_json.unpack(row.answer),
        row.note,
        row.created_by,
        row.created_at,
    )
