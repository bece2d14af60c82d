"""Jobs: ask for one, list them, cancel one. Asking is part of the change that makes the work needed: its transaction.

Of one kind and key at most one job waits, so asking again and again costs one row. A job that is running does not
count: what changed since it began is the next one's work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from registry import strict_json
from registry.db import now
from registry.errors import Conflict, FieldError
from registry.ids import new_id, to_text
from registry.jobs.errors import JobEnded, JobNotFound
from registry.models import Job, Project
from registry.upsert import insert_missing

ENDED: Final = ("done", "failed", "cancelled")


class TooManyJobs(Conflict):
    code = "too-many-jobs"
    title = "Too many jobs of this kind are waiting"


@dataclass(frozen=True)
class JobRow:
    """A job as it stands. `progress_total` None: nobody knows yet. `report` is what came of it."""

    id: int
    project_id: int
    project: str
    kind: str
    key: str
    resource: str | None
    arguments: Mapping[str, Any]
    state: str
    claims: int
    failures: int
    not_before: datetime
    worker: str | None
    progress_done: int
    progress_total: int | None
    progress_text: str | None
    error_code: str | None
    error: str | None
    report: Mapping[str, Any] | None
    asked_by: str
    created_at: datetime
    started_at: datetime | None
    ended_at: datetime | None


@dataclass(frozen=True)
class Wanted:
    """A job to ask for. Of one kind and key, one waits at most."""

    kind: str
    key: str
    arguments: Mapping[str, Any]
    resource: str | None = None
    not_before: datetime | None = None


def ask_for(session: Session, project_id: int, jobs: Sequence[Wanted], *, asked_by: str) -> None:
    """Make these jobs wait; those of which one waits already add nothing."""
    insert_missing(session, Job, [_row(project_id, each, asked_by) for each in jobs])


def ask_for_one(session: Session, project_id: int, job: Wanted, *, asked_by: str, sooner: bool = True) -> JobRow:
    """The waiting job of this kind and key, made where there is none; a person asks, so it is due at once."""
    ask_for(session, project_id, [job], asked_by=asked_by)
    own = (Job.project_id == project_id, Job.kind == job.kind, Job.key == job.key, Job.state == "waiting")
    if sooner and job.not_before is None:
        session.execute(update(Job).where(*own, Job.not_before > now()).values(not_before=now()))
    return _read(session, _query().where(*own))[0]


def find_unfinished(session: Session, project_id: int, kind: str, key: str) -> JobRow | None:
    """The job of this kind and key that waits or runs: the oldest, where there are both."""
    query = _query().where(Job.project_id == project_id, Job.kind == kind, Job.key == key)
    rows = _read(session, query.where(Job.state.in_(("waiting", "running"))).order_by(Job.id).limit(1))
    return rows[0] if rows else None


def get_job(session: Session, job_id: int) -> JobRow:
    """Raises JobNotFound."""
    rows = _read(session, _query().where(Job.id == job_id))
    if not rows:
        raise JobNotFound(f"There is no job {to_text(job_id)}. GET /api/v1/jobs lists them.")
    return rows[0]


def list_jobs(
    session: Session,
    *,
    project_ids: Sequence[int] | None = None,
    states: Sequence[str] = (),
    kind: str | None = None,
    after: int | None = None,
    limit: int = 50,
) -> list[JobRow]:
    """Jobs, the newest first, those before the id `after`; `project_ids` None means every project."""
    query = _query().order_by(Job.id.desc()).limit(limit)
    if project_ids is not None:
        query = query.where(Job.project_id.in_(project_ids))
    if states:
        query = query.where(Job.state.in_(states))
    if kind is not None:
        query = query.where(Job.kind == kind)
    if after is not None:
        query = query.where(Job.id < after)
    return _read(session, query)


def cancel_job(session: Session, job_id: int) -> JobRow:
    """End a job that waits or runs; what it did so far stays. Raises JobNotFound, JobEnded."""
    job = session.scalars(select(Job).where(Job.id == job_id).with_for_update()).one_or_none()
    if job is None:
        raise JobNotFound(f"There is no job {to_text(job_id)}. GET /api/v1/jobs lists them.")
    if job.state in ENDED:
        message = f"it is {job.state}"
        raise JobEnded(f"Job {to_text(job_id)} cannot be cancelled: {message}.", errors=[FieldError("", message)])
    job.state, job.ended_at, job.worker, job.lease_until = "cancelled", now(), None, None
    job.claims += 1  # whoever runs it learns at its next write that it is no longer his
    session.flush()
    return get_job(session, job_id)


def _row(project_id: int, job: Wanted, asked_by: str) -> dict[str, Any]:
    at = now()
    return {
        "id": new_id(),
        "project_id": project_id,
        "kind": job.kind,
        "key": job.key,
        "resource": job.resource,
        "arguments": strict_json.canonical(job.arguments),
        "state": "waiting",
        "claims": 0,
        "failures": 0,
        "not_before": job.not_before or at,
        "progress_done": 0,
        "asked_by": asked_by,
        "created_at": at,
    }


def _query() -> Any:
    return select(Job, Project.name).join(Project, Project.id == Job.project_id)


def _read(session: Session, query: Any) -> list[JobRow]:
    same = (
        *("id", "project_id", "kind", "key", "resource", "state", "claims", "failures", "not_before", "worker"),
        *("progress_done", "progress_total", "progress_text", "error_code", "error", "asked_by"),
        *("created_at", "started_at", "ended_at"),
    )
    found = session.execute(query.execution_options(populate_existing=True))
    return [
        JobRow(
            project=project,
            arguments=strict_json.loads(job.arguments.encode()),
            report=None if job.report is None else strict_json.loads(job.report.encode()),
            **{name: getattr(job, name) for name in same},
        )
        for job, project in found
    ]
