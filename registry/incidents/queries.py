"""What the ledger answers: one incident, a list, and a summary in figures."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, func, literal, select
from sqlalchemy.orm import Session

from registry import strict_json
from registry.ids import to_text
from registry.incidents.shapes import IncidentNotFound, IncidentRow
from registry.keyset import Key, KeyType, after, from_plain
from registry.models import Attempt, Incident, Project, Run

KEYS: Final = (
    Key(Incident.occurred_at, KeyType.TIME, descending=True, nullable=False),
    Key(Incident.id, KeyType.INTEGER, descending=True, nullable=False),
)
_OWN: Final = (
    *("id", "project_id", "run_id", "key", "kind", "cause", "cause_said_by", "evidence", "occurred_at", "exit_code"),
    *("signal", "node", "hardware", "last_step", "steps_lost", "steps_lost_said", "checkpoint_id", "replica_id"),
    *("signature", "note", "opened_by", "created_at", "closed_at", "ending", "recovered_at"),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Which incidents: of these projects (None: all), of a run, open or closed ones, of a cause."""

    project_ids: Collection[int] | None = None
    run_id: int | None = None
    open: bool | None = None
    cause: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """`steps_lost` counts those incidents that know it; `unknown_losses` do not. Times: of the first and the last."""

    count: int
    open: int
    steps_lost: int
    unknown_losses: int
    first_at: datetime | None
    last_at: datetime | None


@dataclass(frozen=True, slots=True)
class CauseCount:
    cause: str
    count: int
    open: int
    steps_lost: int


def get_incident(session: Session, incident_id: int) -> IncidentRow:
    """With its log excerpt. Raises IncidentNotFound."""
    found = session.execute(_select(Incident.log_excerpt).where(Incident.id == incident_id)).one_or_none()
    if found is None:
        raise IncidentNotFound(f"There is no incident {to_text(incident_id)}. GET /api/v1/incidents lists them.")
    return _row(found)


def list_incidents(
    session: Session, asked: Asked, *, after_values: Sequence[Any] | None = None, limit: int = 50
) -> list[IncidentRow]:
    """The newest first, without their log excerpts. `after_values`: (occurred_at, id) as plain values."""
    query = _filtered(_select(literal(None)), asked)
    if after_values is not None:
        query = query.where(after(KEYS, from_plain(KEYS, after_values)))
    query = query.order_by(*(key.clause for key in KEYS)).limit(limit)
    return [_row(found) for found in session.execute(query)]


def summarise(session: Session, asked: Asked) -> Summary:
    amount = func.count(Incident.id)
    query: Select[Any] = _filtered(
        select(
            amount,
            amount.filter(Incident.closed_at.is_(None)),
            func.coalesce(func.sum(Incident.steps_lost), 0),
            amount.filter(Incident.steps_lost.is_(None)),
            func.min(Incident.occurred_at),
            func.max(Incident.occurred_at),
        ),
        asked,
    )
    count, still_open, lost, unknown, first, last = session.execute(query).one()
    return Summary(count, still_open, int(lost), unknown, first, last)


def count_by_cause(session: Session, asked: Asked) -> list[CauseCount]:
    """The most frequent first, then by name."""
    amount = func.count(Incident.id)
    query = _filtered(
        select(
            Incident.cause,
            amount,
            amount.filter(Incident.closed_at.is_(None)),
            func.coalesce(func.sum(Incident.steps_lost), 0),
        ),
        asked,
    )
    query = query.group_by(Incident.cause).order_by(amount.desc(), Incident.cause)
    return [CauseCount(cause, count, still, int(lost)) for cause, count, still, lost in session.execute(query)]


def _select(excerpt: Any) -> Select[Any]:
    return (
        select(
            *(getattr(Incident, name) for name in _OWN),
            excerpt.label("log_excerpt"),
            Project.name.label("project"),
            Run.name.label("run"),
            Attempt.number.label("attempt"),
        )
        .join(Project, Project.id == Incident.project_id)
        .join(Run, Run.id == Incident.run_id)
        .outerjoin(Attempt, Attempt.id == Incident.attempt_id)
    )


def _filtered(query: Select[*tuple[Any, ...]], asked: Asked) -> Select[Any]:
    if asked.project_ids is not None:
        query = query.where(Incident.project_id.in_(asked.project_ids))
    if asked.run_id is not None:
        query = query.where(Incident.run_id == asked.run_id)
    if asked.open is not None:
        query = query.where(Incident.closed_at.is_(None) if asked.open else Incident.closed_at.is_not(None))
    if asked.cause is not None:
        query = query.where(Incident.cause == asked.cause)
    if asked.since is not None:
        query = query.where(Incident.occurred_at >= asked.since)
    return query


def _row(found: Any) -> IncidentRow:
    values = dict(found._mapping)
    evidence = values.pop("evidence")
    return IncidentRow(**values, evidence=tuple(strict_json.loads(evidence.encode())) if evidence else ())
