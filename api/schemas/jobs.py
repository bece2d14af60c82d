"""Shapes of durable jobs."""

from typing import Any, Literal, Self

from api.schemas.common import Answer, Id, Time
from registry.jobs.queue import JobRow
from registry.jobs.workers import WorkerRow

JobState = Literal["waiting", "running", "done", "failed", "cancelled"]


class ProgressOut(Answer):
    """`total` null: nobody knows yet."""

    done: int
    total: int | None
    text: str | None


class JobOut(Answer):
    """A piece of durable work. `report` is what came of it; `error` what went wrong, also while it is tried again."""

    id: Id
    project: str
    kind: str
    key: str
    arguments: dict[str, Any]
    state: str
    failures: int
    not_before: Time
    worker: str | None
    progress: ProgressOut
    error_code: str | None
    error: str | None
    report: dict[str, Any] | None
    asked_by: str
    created_at: Time
    started_at: Time | None
    ended_at: Time | None

    @classmethod
    def from_row(cls, row: JobRow) -> Self:
        own = (
            *("id", "project", "kind", "key", "state", "failures", "not_before", "worker", "error_code", "error"),
            *("asked_by", "created_at", "started_at", "ended_at"),
        )
        progress = ProgressOut.model_construct(done=row.progress_done, total=row.progress_total, text=row.progress_text)
        values: dict[str, Any] = {name: getattr(row, name) for name in own}
        report = None if row.report is None else dict(row.report)
        return cls.model_construct(**values, progress=progress, arguments=dict(row.arguments), report=report)


class JobPage(Answer):
    items: list[JobOut]
    next_cursor: str | None


class WorkerOut(Answer):
    """`alive`: heard of a short while ago."""

    name: str
    started_at: Time
    seen_at: Time
    alive: bool

    @classmethod
    def from_row(cls, row: WorkerRow) -> Self:
        return cls.model_construct(name=row.name, started_at=row.started_at, seen_at=row.seen_at, alive=row.alive)


class WorkerPage(Answer):
    items: list[WorkerOut]
    next_cursor: str | None
