"""Links to experiment trackers, and durable jobs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn.reading import FLAG, ITEMS, MAPPING, MOMENT, TEXT, WHOLE, many, one
from cairn.types.base import Answer
from cairn.types.runs import RunRef


@dataclass(frozen=True, kw_only=True)
class TrackerLink(Answer):
    """Where a run is found in MLflow or W&B, and how things stand with it."""

    id: str = field(metadata=TEXT)
    run: RunRef | None = field(default=None, metadata=one(RunRef))
    kind: str = field(default="", metadata=TEXT)
    uri: str | None = field(default=None, metadata=TEXT)
    entity: str | None = field(default=None, metadata=TEXT)
    project: str | None = field(default=None, metadata=TEXT)
    run_id: str = field(default="", metadata=TEXT)
    state: str = field(default="", metadata=TEXT)
    error: str | None = field(default=None, metadata=TEXT)
    synced_at: datetime | None = field(default=None, metadata=MOMENT)
    external_state: str | None = field(default=None, metadata=TEXT)
    external_name: str | None = field(default=None, metadata=TEXT)
    push_state: str = field(default="", metadata=TEXT)
    push_error: str | None = field(default=None, metadata=TEXT)

    def __str__(self) -> str:
        return f"{self.kind} {self.run_id}"


@dataclass(frozen=True, kw_only=True)
class TrackerField(Answer):
    """What the trackers of a run say of one field, beside what the registry says."""

    name: str = field(default="", metadata={**TEXT, "name": "field"})
    agree: bool = field(default=True, metadata=FLAG)
    said: tuple[Any, ...] = field(default=(), metadata=ITEMS)


@dataclass(frozen=True, kw_only=True)
class TrackerLinks(Answer):
    """The links of a run; `fields` holds what the trackers say, also where they disagree."""

    items: tuple[TrackerLink, ...] = field(default=(), metadata=many(TrackerLink))
    fields: tuple[TrackerField, ...] = field(default=(), metadata=many(TrackerField))


@dataclass(frozen=True, kw_only=True)
class Tracking(Answer):
    """How a project is kept in step with its trackers."""

    push_mlflow: bool = field(default=False, metadata=FLAG)
    push_wandb: bool = field(default=False, metadata=FLAG)
    best_by: str | None = field(default=None, metadata=TEXT)
    refresh_seconds: int = field(default=0, metadata=WHOLE)


@dataclass(frozen=True, kw_only=True)
class JobProgress(Answer):
    done: int = field(default=0, metadata=WHOLE)
    total: int | None = field(default=None, metadata=WHOLE)
    text: str | None = field(default=None, metadata=TEXT)


@dataclass(frozen=True, kw_only=True)
class Job(Answer):
    """Durable work of the service. `error` is set also while it is tried again; `report` is what came of it."""

    id: str = field(metadata=TEXT)
    project: str = field(default="", metadata=TEXT)
    kind: str = field(default="", metadata=TEXT)
    state: str = field(default="", metadata=TEXT)
    progress: JobProgress = field(default_factory=JobProgress, metadata=one(JobProgress))
    error: str | None = field(default=None, metadata=TEXT)
    error_code: str | None = field(default=None, metadata=TEXT)
    report: Mapping[str, Any] | None = field(default=None, metadata=MAPPING)
    created_at: datetime | None = field(default=None, metadata=MOMENT)
    ended_at: datetime | None = field(default=None, metadata=MOMENT)

    @property
    def has_ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")


@dataclass(frozen=True, kw_only=True)
class JobPage(Answer):
    items: tuple[Job, ...] = field(default=(), metadata=many(Job))
    next_cursor: str | None = field(default=None, metadata=TEXT)
